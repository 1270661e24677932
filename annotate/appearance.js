// Runs before anything of Streamlit's: it reads this note as it loads, under the path that it
// was loaded under, and keeps to it on every other screen.
(() => {
  const theme = document.currentScript.dataset.theme;
  localStorage.setItem(`stActiveTheme-${location.pathname}-v2`, JSON.stringify(theme));
  // Streamlit says light or dark inside its own page; dialogs and the first moment are outside.
  const schemes = { Light: "light", Dark: "dark", System: "light dark" };
  document.documentElement.style.colorScheme = schemes[theme];

  // An address may ask Streamlit for a theme as well: it is not the address that decides.
  const address = new URL(location.href);
  if (address.searchParams.has("embed_options")) {
    address.searchParams.delete("embed_options");
    history.replaceState(null, "", address);
  }

  document.addEventListener("click", async (event) => {
    const choice = event.target.closest?.("button[data-appearance]")?.dataset.appearance;
    if (!choice) return;
    const answer = await fetch(`/appearance?choice=${choice}`, { method: "POST" });
    if (answer.ok) location.reload();
  });
})();
