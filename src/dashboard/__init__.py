"""The pages of the dashboard: templates, their filters, and the assets that they load. Pure.

The transport ``transports/dashboard`` renders pages with this package. The package knows the rows of status reports,
and how to show them to people. It must not know sockets, cookies, sessions, the store, or how calls run.
"""

from .argument_form import FormField, argument_form
from .call_snippets import call_snippets
from .diff_view import diff_lines
from .form_arguments import FormArguments, child_name, form_arguments
from .graph_layout import GraphEdge, GraphNode, layout
from .page_assets import Asset, AssetError, Assets, load_assets
from .pages import Pages
from .result_view import shown_result

__all__ = [
    "Asset",
    "AssetError",
    "Assets",
    "FormArguments",
    "FormField",
    "GraphEdge",
    "GraphNode",
    "Pages",
    "argument_form",
    "call_snippets",
    "child_name",
    "diff_lines",
    "form_arguments",
    "layout",
    "load_assets",
    "shown_result",
]
