"""Shaping: what is asked of a result, and what is made of it. Pure: values in, values out.

Who calls it: tools that shape results and chain calls. What it knows: paths, filters, templates, and the order in which
a value is shaped; the language is in docs/shaping.md. What it must never know: which tools there are, where results
lie, who waits.

``plan(options).apply(value)`` shapes; ``parse_filter`` and ``compile_filter`` decide, and ``compile_pattern`` of a
text; ``compile_template(value)`` and its ``resolve(context)`` fill in; ``as_json``, ``as_ndjson`` and ``as_csv`` write.
Values are what JSON decodes to: dict, list, str, int, float, bool, None.
"""

from .filter_matching import compile_filter
from .filter_operands import PatternError, compile_pattern
from .filter_parser import parse_filter
from .filters import Filter, conditions_of, paths_of
from .row_formats import as_csv, as_json, as_ndjson, from_csv, from_json, from_ndjson
from .shaping_errors import LanguageError, MissingValueError, NoListError, ShapingError
from .shaping_options import plan
from .shaping_plan import ShapedValue, ShapingPlan, ShapingReport
from .templates import Template, compile_template
from .value_kinds import weight
from .value_paths import MISSING, Said, ValuePath, find, parse_path

__all__ = [
    "MISSING",
    "Filter",
    "LanguageError",
    "MissingValueError",
    "NoListError",
    "PatternError",
    "Said",
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
    "find",
    "from_csv",
    "from_json",
    "from_ndjson",
    "parse_filter",
    "parse_path",
    "paths_of",
    "plan",
    "weight",
]
