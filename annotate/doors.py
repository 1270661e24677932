"""The pages in front of the application: sign in, invitation, welcome."""

import html
import importlib.resources

from starlette.responses import HTMLResponse

HERE = importlib.resources.files("annotate")
STYLE = (HERE / "signin.css").read_text("utf-8")
JOIN_SCRIPT = (HERE / "join.js").read_text("utf-8")
HOSPITAL = '<p class="or">or</p><a class="button plain" href="/?hospital">Sign in with your hospital account</a>'


def login(message: str = "", status: int = 200, hospital: bool = False) -> HTMLResponse:
    """Return the sign-in page, with what went wrong; `hospital` offers the hospital account."""
    alert = f'<p role="alert" id="wrong">{html.escape(message)}</p>' if message else ""
    described = ' aria-invalid="true" aria-describedby="wrong"' if message else ""
    parts = {"alert": alert, "described": described, "hospital": HOSPITAL if hospital else ""}
    return _page("login.html", parts, status)


def join() -> HTMLResponse:
    """Return the page an invitation's link opens; the code in the link never reaches us here."""
    return _page("join.html", {})


def welcome(name: str, code: str) -> HTMLResponse:
    """Return the page that shows the personal code of somebody who came by an invitation."""
    return _page("welcome.html", {"name": html.escape(name), "code": html.escape(code)})


def _page(template: str, parts: dict[str, str], status: int = 200) -> HTMLResponse:
    """Return a page that no cache keeps."""
    text = (HERE / template).read_text("utf-8")
    for name, value in ({"style": STYLE} | parts).items():
        text = text.replace("{{" + name + "}}", value)
    return HTMLResponse(text, status, headers={"Cache-Control": "no-store"})
