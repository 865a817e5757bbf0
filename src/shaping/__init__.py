"""Shaping: filters, projects and aggregates JSON values, and resolves templates. Pure.

Used by tools that shape results and chain calls. Knows paths, filters, templates, and the order in which a value is
shaped; docs/shaping.md describes the language. Must not know tools, where results are stored, or callers.

``plan(options).apply(value)`` shapes; ``parse_filter``, ``compile_filter`` and ``compile_pattern`` test values;
``compile_template(value)`` and its ``resolve(context)`` fill in templates; ``as_json``, ``as_ndjson`` and ``as_csv``
write rows. Values are those that JSON decodes to: dict, list, str, int, float, bool, None.
"""

from .filter_conditions import Filter, conditions_of, paths_of
from .filter_matching import compile_filter
from .filter_operands import PatternError, compile_pattern
from .filter_parser import parse_filter
from .row_formats import as_csv, as_json, as_ndjson, from_csv, from_json, from_ndjson
from .shaping_errors import LanguageError, MissingValueError, NoListError, ShapingError
from .shaping_options import plan
from .shaping_plan import ShapedValue, ShapingPlan, ShapingReport
from .templates import Template, compile_template
from .value_kinds import weight
from .value_paths import MISSING, ParsedTexts, ValuePath, find_value, parse_path

__all__ = [
    "MISSING",
    "Filter",
    "LanguageError",
    "MissingValueError",
    "NoListError",
    "ParsedTexts",
    "PatternError",
    "ShapedValue",
    "ShapingError",
    "ShapingPlan",
    "ShapingReport",
    "Template",
    "ValuePath",
    "as_csv",
    "as_json",
    "as_ndjson",
    "compile_filter",
    "compile_pattern",
    "compile_template",
    "conditions_of",
    "find_value",
    "from_csv",
    "from_json",
    "from_ndjson",
    "parse_filter",
    "parse_path",
    "paths_of",
    "plan",
    "weight",
]
