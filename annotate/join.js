// The code stands after the # of the link: browsers never send that part, so no log has it.
// It is posted only when the button is pressed: mail scanners that open links do not use it up.
const code = decodeURIComponent(location.hash.slice(1));
if (code) {
  document.getElementById("code").value = code;
  document.getElementById("join").hidden = false;
  document.getElementById("incomplete").hidden = true;
  history.replaceState(null, "", location.pathname);
}
