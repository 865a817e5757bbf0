"""Tools as a REST API: the routes, the answers with their HTTP status, and the OpenAPI document of a toolset. Pure.

``daemon/transports/rest`` uses it. It knows calls, results and the error table; it must never know sockets, the clock,
or which tools there are.
"""
