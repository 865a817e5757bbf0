"""Vendor-specific tools: Kimi's and GLM's APIs besides chat, and questions about files."""

from .glm_payload_preview import glm_payload_preview
from .glm_upload_file import glm_upload_file
from .glm_web_search import glm_web_search
from .kimi_capture_headers import kimi_capture_headers
from .kimi_chat_with_files import kimi_chat_with_files
from .kimi_chat_with_tools import kimi_chat_with_tools
from .kimi_intent_analysis import kimi_intent_analysis
from .kimi_manage_files import kimi_manage_files
from .kimi_upload_files import kimi_upload_files
from .smart_file_download import smart_file_download
from .smart_file_query import smart_file_query

__all__ = [
    "glm_payload_preview",
    "glm_upload_file",
    "glm_web_search",
    "kimi_capture_headers",
    "kimi_chat_with_files",
    "kimi_chat_with_tools",
    "kimi_intent_analysis",
    "kimi_manage_files",
    "kimi_upload_files",
    "smart_file_download",
    "smart_file_query",
]
