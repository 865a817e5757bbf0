"""``python -m toold.providers.simulator --port N``: runs the simulator until it is interrupted."""

import argparse
import asyncio
import contextlib

from . import SIMULATOR_KEY, Simulator


async def _serve(port: int) -> None:
    async with Simulator(port=port) as simulator:
        print(f"KIMI_BASE_URL={simulator.kimi_base_url}\nKIMI_API_KEY={SIMULATOR_KEY}")  # noqa: T201 - its output
        print(f"GLM_BASE_URL={simulator.glm_base_url}\nGLM_API_KEY={SIMULATOR_KEY}", flush=True)  # noqa: T201 - as above
        await simulator.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m toold.providers.simulator", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0, the default, selects a free one")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
