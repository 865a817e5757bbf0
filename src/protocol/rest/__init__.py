"""Tools as a REST API: the routes, the answers with their HTTP status, and the OpenAPI document of a toolset. Pure.

``daemon/transports/rest`` uses this package. It knows calls, results and the error table; it must not know sockets, the
clock, or which tools exist.
"""
