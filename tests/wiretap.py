"""Everything that travels between a page and its server, for tests that search it."""

from playwright.sync_api import Page, Request, WebSocket


def record(page: Page) -> list[bytes]:
    """Collect every byte that a page sends or gets from here on."""
    heard: list[bytes] = []

    def keep(payload: str | bytes) -> None:
        heard.append(payload.encode() if isinstance(payload, str) else payload)

    def keep_both(request: Request) -> None:
        response = request.response()
        assert response is not None  # it is finished
        keep(request.url + str(response.all_headers()) + (request.post_data or ""))
        if response.status < 300:
            keep(response.body())

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", keep)
        socket.on("framereceived", keep)

    page.on("websocket", listen)
    page.on("requestfinished", keep_both)
    return heard
