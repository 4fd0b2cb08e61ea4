"""Helpers of the RAPTOR notebook workbench: one module a stage, each imported by its notebook."""

import logging
import os

# transformers imports bitsandbytes, which logs about an optional kernel that nothing here needs; and it draws a
# bar each time weights are read, which would stand in every notebook. Downloads have a bar of their own.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
