"""A stand-in for Supabase's API: it stores nothing, and the path determines the answer.

``/accepts/…`` accepts all rows at once, ``/slow/…`` after 5 s; ``/refuses/…`` rejects them.
``python -m benchmarks.supabase_stand_in`` prints its port and serves until it is terminated.
"""

import asyncio
from typing import Final

import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from toold.serving import HttpServer

SLOW_S: Final = 5.0


async def accepts(request: Request) -> Response:
    """The answer of PostgREST to an insert that returns no rows."""
    await request.body()
    return Response(status_code=201)


async def slow(request: Request) -> Response:
    """The same after a delay."""
    await request.body()
    await asyncio.sleep(SLOW_S)
    return Response(status_code=201)


async def refuses(request: Request) -> Response:
    """The answer of PostgREST to rows that violate a constraint."""
    await request.body()
    return JSONResponse({"code": "23514", "message": "violates check constraint", "details": None, "hint": None}, 400)


async def main() -> None:
    """Serve on a free loopback port."""
    routes = [
        Route(f"/{name}/{{rest:path}}", endpoint, methods=["GET", "POST"])
        for name, endpoint in (("accepts", accepts), ("slow", slow), ("refuses", refuses))
    ]
    server = HttpServer(Starlette(routes=routes), "127.0.0.1", 0, "--port")
    await server.start()
    print(server.port, flush=True)
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    uvloop.run(main())
