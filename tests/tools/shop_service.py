"""A shop as FastAPI serves and describes it: one operation for each thing that such a service can ask for."""

import datetime
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import uvicorn
from fastapi import (
    Body,
    Cookie,
    Depends,
    FastAPI,
    File,
    Form,
    Header,
    HTTPException,
    Path,
    Query,
    Request,
    Response,
    Security,
    UploadFile,
)
from fastapi.responses import PlainTextResponse, RedirectResponse
from fastapi.security import (
    APIKeyCookie,
    APIKeyHeader,
    APIKeyQuery,
    HTTPAuthorizationCredentials,
    HTTPBasic,
    HTTPBasicCredentials,
    HTTPBearer,
    OAuth2AuthorizationCodeBearer,
    OAuth2PasswordBearer,
    OpenIdConnect,
)
from pydantic import BaseModel, ConfigDict, Field

from tests.support.polling import eventually

KEY, TOKEN, PASSWORD = "key-of-the-shop-1", "token-of-the-shop-2", "password-of-the-shop-3"


class Colour(str, Enum):  # noqa: UP042
    RED = "red"
    DARK_BLUE = "dark blue"


class Size(BaseModel):
    width: float = Field(gt=0)
    height: float | None = None


class Item(BaseModel):
    model_config = ConfigDict(title="Item")
    name: str = Field(min_length=1, max_length=20, description="What it is called.")
    price: float = Field(ge=0)
    colours: list[Colour] = []
    size: Size | None = None
    tags: dict[str, int] = {}
    made_on: datetime.date | None = None
    parts: list["Item"] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool


class Filters(BaseModel):
    limit: int = Field(10, le=100)
    order_by: Literal["name", "price"] = "name"
    colours: list[Colour] = []


class Login(BaseModel):
    user: str
    remember: bool = False
    scopes: list[str] = []


class Patch(BaseModel):
    note: str | None
    price: float | None = None


app = FastAPI(title="Shop", version="1")


@app.get("/items/{item_id}", operation_id="getItem")
def get_item(
    item_id: Annotated[int, Path(ge=1)],
    q: str | None = None,
    short: bool = False,
    x_trace: Annotated[str | None, Header()] = None,
    visit: Annotated[str | None, Cookie()] = None,
) -> dict[str, Any]:
    """One item."""
    if item_id == 404:
        raise HTTPException(404, "no such item")
    return {"id": item_id, "q": q, "short": short, "trace": x_trace, "visit": visit}


@app.get("/files/{path:path}", operation_id="getFile")
def get_file(path: str) -> dict[str, str]:
    return {"path": path}


@app.get("/colours/{colour}", operation_id="getColour")
def get_colour(colour: Colour, day: datetime.date, at: datetime.datetime | None = None, key: UUID | None = None) -> Any:
    return {"colour": colour, "day": day, "at": at, "key": key}


@app.get("/search", operation_id="search")
def search(
    colours: Annotated[list[Colour], Query()],
    sizes: Annotated[list[float] | None, Query(alias="size[]")] = None,
    words: Annotated[set[str], Query(alias="Words")] = frozenset(),  # type: ignore[assignment]
) -> Any:
    return {"colours": colours, "sizes": sizes, "words": sorted(words)}


@app.get("/filtered", operation_id="filtered")
def filtered(filters: Annotated[Filters, Query()]) -> Filters:
    return filters


@app.post("/items", operation_id="createItem", status_code=201)
def create_item(item: Item) -> Item:
    return item


@app.put("/items/{item_id}", operation_id="putItem")
def put_item(item_id: int, item: Item, reason: Annotated[str, Body()], urgent: Annotated[bool, Body()] = False) -> Any:
    return {"id": item_id, "name": item.name, "size": item.size, "reason": reason, "urgent": urgent}


@app.patch("/items/{item_id}", operation_id="patchItem")
def patch_item(item_id: int, patch: Patch) -> Any:
    return {"id": item_id, "sent": patch.model_dump(exclude_unset=True)}


@app.delete("/items/{item_id}", operation_id="deleteItem", status_code=204)
def delete_item(item_id: int) -> None:
    pass


@app.head("/items/{item_id}", operation_id="headItem")
def head_item(item_id: int) -> Response:
    return Response(headers={"X-Id": str(item_id)})


@app.options("/items", operation_id="itemOptions")
def item_options() -> list[str]:
    return ["GET", "POST"]


@app.post("/pets", operation_id="addPet")
def add_pet(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> Any:
    return pet


@app.post("/either", operation_id="either")
def either(value: Annotated[int | list[str] | Size, Body()]) -> Any:
    return {"is": type(value).__name__, "value": value}


@app.post("/embedded", operation_id="embedded")
def embedded(item: Annotated[Size, Body(embed=True)]) -> Size:
    return item


@app.post("/login", operation_id="login")
def login(login: Annotated[Login, Form()]) -> Login:
    return login


@app.post("/upload", operation_id="upload")
async def upload(
    file: UploadFile,
    more: Annotated[list[bytes], File()],
    note: Annotated[str, Form()],
    labels: Annotated[list[str], Form()],
    extra: Annotated[UploadFile | None, File()] = None,
) -> Any:
    said = (await file.read()).decode()
    return {"file": said, "more": [one.decode() for one in more], "note": note, "labels": labels, "extra": extra}


@app.post(
    "/raw",
    operation_id="raw",
    openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {
        "type": "string", "contentEncoding": "base64"}}}}},
)  # fmt: skip
async def raw(request: Request) -> Any:
    return {"bytes": list(await request.body()), "type": request.headers["content-type"]}


@app.post(
    "/text",
    operation_id="text",
    openapi_extra={"requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def text(request: Request) -> PlainTextResponse:
    return PlainTextResponse((await request.body()).decode().upper())


@app.get("/picture", operation_id="picture")
def picture() -> Response:
    return Response(b"\x89PNG\r\n\x1a\n" + bytes(8), media_type="image/png")


@app.get("/moved", operation_id="moved")
def moved() -> RedirectResponse:
    return RedirectResponse("/items/7?q=moved")


@app.post("/moved", operation_id="movedPost")
def moved_post() -> RedirectResponse:
    return RedirectResponse("/items/7")


@app.get("/broken", operation_id="broken")
def broken() -> Response:
    raise HTTPException(503, "come back later")


OPENID = OpenIdConnect(openIdConnectUrl="/.well-known/openid-configuration", scheme_name="openid")


def refuse(right: bool) -> dict[str, str]:
    if not right:
        raise HTTPException(401, "who are you?")
    return {"you": "are in"}


@app.get("/by-header", operation_id="byHeader")
def by_header(key: Annotated[str, Security(APIKeyHeader(name="X-Key", scheme_name="headerKey"))]) -> Any:
    return refuse(key == KEY)


@app.get("/by-query", operation_id="byQuery")
def by_query(key: Annotated[str, Security(APIKeyQuery(name="key", scheme_name="queryKey"))], q: str = "") -> Any:
    return refuse(key == KEY) | {"q": q}


@app.get("/by-cookie", operation_id="byCookie")
def by_cookie(key: Annotated[str, Security(APIKeyCookie(name="key", scheme_name="cookieKey"))]) -> Any:
    return refuse(key == KEY)


@app.get("/by-basic", operation_id="byBasic")
def by_basic(given: Annotated[HTTPBasicCredentials, Depends(HTTPBasic(scheme_name="basic"))]) -> Any:
    return refuse((given.username, given.password) == ("ann", PASSWORD))


@app.get("/by-bearer", operation_id="byBearer")
def by_bearer(given: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer(scheme_name="bearer"))]) -> Any:
    return refuse(given.credentials == TOKEN)


@app.get("/by-password", operation_id="byPassword")
def by_password(
    token: Annotated[str, Depends(OAuth2PasswordBearer(tokenUrl="token", scheme_name="password"))],
) -> Any:
    return refuse(token == TOKEN)


@app.get("/by-code", operation_id="byCode")
def by_code(
    token: Annotated[
        str,
        Depends(
            OAuth2AuthorizationCodeBearer(
                authorizationUrl="/authorize", tokenUrl="/token", scopes={"read": "Read it."}, scheme_name="code"
            )
        ),
    ],
) -> Any:
    return refuse(token == TOKEN)


@app.get("/by-openid", operation_id="byOpenid")
def by_openid(given: Annotated[str, Depends(OPENID)]) -> Any:
    return refuse(given == f"Bearer {TOKEN}")


# Of two dependencies FastAPI says that either is enough.
@app.get("/by-two", operation_id="byTwo", openapi_extra={"security": [{"headerKey": [], "bearer": []}]})
def by_two(request: Request) -> Any:
    return refuse((request.headers.get("x-key"), request.headers.get("authorization")) == (KEY, f"Bearer {TOKEN}"))


@contextmanager
def served() -> Iterator[str]:
    """The shop on this machine: its address."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    eventually(lambda: server.started or not thread.is_alive())
    assert server.started
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
