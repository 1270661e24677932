// Without a session the server opens no connection, and Streamlit would try again for ever: a page
// whose session has ended meanwhile goes to sign in. The rating room sees to its own.
const CONNECTION = "data-test-connection-state";
const EVERY_MS = 3000;
let looking = null;

async function look() {
  const page = document.querySelector(`[${CONNECTION}]`);
  if (!page || page.getAttribute(CONNECTION) === "CONNECTED") return;
  const answer = await fetch("/login", { redirect: "manual", cache: "no-store" }).catch(() => null);
  if (answer?.ok) location.assign("/login"); // with a session it leads back to the page
}

export default function () {
  looking ??= setInterval(look, EVERY_MS);
  return () => {
    clearInterval(looking);
    looking = null;
  };
}
