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

  // Without a session the server opens no connection, and Streamlit would try again for ever: a page
  // whose session has ended meanwhile goes to sign in. The rating room sees to its own.
  const CONNECTION = "data-test-connection-state";
  setInterval(async () => {
    const page = document.querySelector(`[${CONNECTION}]`);
    if (!page || page.getAttribute(CONNECTION) === "CONNECTED" || document.querySelector(".mj-room")) return;
    const answer = await fetch("/login", { redirect: "manual", cache: "no-store" }).catch(() => null);
    if (answer?.ok) location.assign("/login"); // with a session it leads back to the page
  }, 3000);

  document.addEventListener("click", async (event) => {
    const choice = event.target.closest?.("button[data-appearance]")?.dataset.appearance;
    if (!choice) return;
    const answer = await fetch(`/appearance?choice=${choice}`, { method: "POST" });
    if (answer.ok) location.reload();
  });
})();
