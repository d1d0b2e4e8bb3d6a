"""What the built site is to be: `./dev docs --check` builds it, and runs this.

Links are followed in the files. The rest is seen in a browser, where there is a Chromium: a page of
ours (``look.html``) opens those of the site in frames, measures them, and sends what it saw.
"""

import functools
import http.server
import json
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.parse
from pathlib import Path

import pytest

from docs.generator.keywords import KEYWORDS

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
PAGES = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)
NAMES = {str(path.relative_to(SITE)): path for path in PAGES}
MADE = {"py-modindex.html", "search.html"}  # by the generator alone
GUIDES = [name for name in NAMES if not name.startswith("reference/") and name not in MADE]
LISTS = [name for name in NAMES if re.fullmatch(r"reference/[a-z_.]+\.html", name)]
LONGEST = sorted(set(NAMES) - MADE, key=lambda name: NAMES[name].stat().st_size)[-60:]

WORDS = {  # what people type, and a page that is to be among the first ten
    "install": "installation",
    "installation": "installation",
    "extras": "installation",
    "quick start": "quick-start",
    "jax": "coming-from-jax",
    "PyTorch": "coming-from-pytorch",
    "DDP": "coming-from-pytorch",
    "MPI": "coming-from-pytorch",
    "rank": "",
    "all_reduce": "coming-from-pytorch",
    "FAQ": "faq",
    "pmap": "reference/phalanx.pmap",
    "vmap": "reference/phalanx.vmap",
    "jit": "reference/phalanx.jit",
    "grad": "reference/phalanx.grad",
    "value_and_grad": "reference/phalanx.value_and_grad",
    "shard_map": "reference/phalanx.shard_map",
    "sharding": "axes",
    "explicit sharding": "explicit-sharding",
    "symbolic shape": "export",
    "mesh": "axes",
    "GPU": "accelerators",
    "TPU": "accelerators",
    "psum": "reference/phalanx.lax.psum",
    "all_gather": "reference/phalanx.lax.all_gather",
    "scan": "reference/phalanx.lax.scan",
    "while_loop": "reference/phalanx.lax.while_loop",
    "cond": "reference/phalanx.lax.cond",
    "control flow": "control",
    "einsum": "reference/phalanx.numpy.einsum",
    "softmax": "reference/phalanx.nn.softmax",
    "attention": "reference/phalanx.nn.dot_product_attention",
    "gelu": "reference/phalanx.nn.gelu",
    "one_hot": "reference/phalanx.nn.one_hot",
    "normal": "reference/phalanx.random.normal",
    "random": "reference/phalanx.random",
    "dropout": "dropout",
    "optimizer": "optimizers",
    "Adam": "optimizers",
    "schedule": "schedules",
    "learning rate": "schedules",
    "mixed precision": "mixed-precision",
    "data loader": "data",
    "evaluation": "evaluation",
    "NaN": "debugging-nan",
    "check": "checking",
    "collectives": "collectives",
    "gradient accumulation": "lanes-at-once",
    "slurm": "clusters",
    "kubernetes": "clusters",
    "preemption": "lost-processes",
    "glossary": "glossary",
    "changelog": "changelog",
    "contributing": "contributing",
    "citation": "citation",
    "optax": "libraries/optax",
    "flax": "libraries/flax-linen",
    "checkpoint": "checkpoints",
    "save": "saving",
    "rematerialization": "memory",
    "cache": "cache",
    "compilation": "cache",
    "recompilation": "faq",
    "callback": "effects",
    "print": "effects",
    "debug_nans": "reference/phalanx.debug_nans",
    "float64": "faq",
    "bfloat16": "mixed-precision",
    "donate": "",
    "profiler": "reference/phalanx.profiler",
    "profiling": "profiling",
    "custom_vjp": "reference/phalanx.custom_vjp",
    "hessian": "reference/phalanx.hessian",
    "fft": "reference/phalanx.numpy.fft",
    "eigh": "reference/phalanx.numpy.linalg.eigh",
    "pytree": "reference/phalanx.tree",
    "transformer": "transformer",
    "FSDP": "fsdp",
    "pipeline": "pipeline",
    "processes": "processes",
    "export": "export",
    "out of memory": "faq",
    "multi gpu": "accelerators",
    "multiple gpus": "accelerators",
    "random seed": "faq",
    "seed": "faq",
    "distributed": "reference/phalanx.distributed",
    "multi node": "clusters",
    "print inside jit": "effects",
    "debugging": "debugging-nan",
    "gradient clipping": "optimizers",
    "mixture of experts": "experts",
    "orbax": "libraries/training",
    "TrainState": "libraries/training",
    "mutable": "refs",
    "in place": "faq",
    "tracer": "errors",
    "leaked tracer": "errors",
    "TracerBoolConversionError": "errors",
    "timing": "profiling",
    "block_until_ready": "reference/phalanx.block_until_ready",
    "slow": "faq",
    "environment variable": "api",
    "compile for TPU": "ahead-of-time",
    "fori_loop": "reference/phalanx.lax.fori_loop",
    "custom gradient": "rules",
    "foreign function": "ffi",
    "linear algebra": "linalg",
    "type hints": "types",
    "numpyro": "libraries/numpyro",
    "benchmark": "benchmarks",
    "limits": "limits",
    "MoE": "experts",
    "gradient checkpointing": "memory",
    "bf16": "mixed-precision",
    "autocast": "mixed-precision",
    "resume": "checkpoints",
    "state_dict": "checkpoints",
    "CNN": "training",
    "conv2d": "training",
    "tutorial": "training",
    "cross entropy": "training",
    "progress bar": "training",
    "tqdm": "same-script",
    "wandb": "same-script",
    "tensorboard": "same-script",
    "early stopping": "evaluation",
    "DataLoader": "data",
    "macOS": "installation",
    "Docker": "installation",
    "warmup": "schedules",
    "AdamW": "optimizers",
    "LLM": "transformer",
}


# ---- the files ------------------------------------------------------------------------------


@functools.cache
def text_of(name):
    return NAMES[name].read_text(encoding="utf-8")


@functools.cache
def anchors(name):
    return set(re.findall(r'\bid="([^"]+)"', text_of(name)))


def test_links_lead_somewhere():
    broken = set()
    for name in NAMES:
        for link in set(re.findall(r'<a\b[^>]*\bhref="([^"]*)"', text_of(name))):
            target, _, anchor = link.partition("#")
            if "//" in link or link.startswith("mailto:"):
                continue
            path = Path(name).parent / urllib.parse.unquote(target) if target else Path(name)
            there = str(Path(*normal(path.parts)))
            anchor = urllib.parse.unquote(anchor)
            if there not in NAMES or (anchor and anchor not in anchors(there)):
                broken.add((name, link))
    assert len(NAMES) > 1400
    assert not broken


def normal(parts):
    """The parts of a path without steps upwards."""
    kept = []
    for part in parts:
        kept = kept[:-1] if part == ".." else [*kept, part]
    return kept


def test_nothing_comes_from_elsewhere():
    loads = re.compile(r'<(?:script|img|iframe)\b[^>]*\bsrc="(https?:[^"]*)"|@import|@font-face')
    styles = re.compile(r'<link\b[^>]*rel="stylesheet"[^>]*href="(https?:[^"]*)"')
    for name in NAMES:
        assert not loads.search(text_of(name)) and not styles.search(text_of(name)), name


def test_guides_are_described_by_their_first_words():
    described = {}
    for name in set(GUIDES) - {"index.html"}:
        (words,) = re.findall(r'<meta name="description" content="([^"]+)">', text_of(name))
        described.setdefault(words, []).append(name)
    assert all(len(names) == 1 for names in described.values()), described


def test_pages_are_light():
    heavy = {n: p.stat().st_size for n, p in NAMES.items() if n not in MADE}
    assert not {name: size for name, size in heavy.items() if size > 300_000}


# ---- in a browser ---------------------------------------------------------------------------


class Server(http.server.ThreadingHTTPServer):
    """The site, the page that looks at it, what it is to look at, and what it saw."""

    def __init__(self, tasks):
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(SITE)))
        self.tasks, self.seen, self.done = tasks, [], threading.Event()

    def handle_error(self, *_):
        """The browser may leave before it has read everything."""


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/look":
            self.reply((Path(__file__).parent / "look.html").read_bytes(), "text/html")
        elif self.path == "/tasks":
            self.reply(json.dumps(self.server.tasks).encode(), "application/json")
        else:
            super().do_GET()

    def do_POST(self):
        self.server.seen = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply(b"", "text/plain")
        self.server.done.set()

    def reply(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


WIDTHS = [390, 1280]  # a phone, and a window on a desk
THEMES = ["light", "dark"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), "")
in_browser = pytest.mark.skipif(not CHROMIUM, reason="needs a Chromium")


def look(pages):
    """What a browser sees of each page, in windows of all widths, light and dark."""
    tasks = [{"page": f"/{page}", "widths": WIDTHS, "themes": THEMES} for page in pages]
    server = Server(tasks)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        page = f"http://127.0.0.1:{server.server_port}/look"
        browser = subprocess.Popen(
            [CHROMIUM, *options, "--window-size=1400,1000", "--remote-debugging-port=0", page],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert server.done.wait(300), "the browser did not come to its end"
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
            server.server_close()
    return server.seen


@functools.cache
def seen_pages():
    pages = list(dict.fromkeys([*GUIDES, *LISTS, *LONGEST]))
    return dict(zip(pages, look(pages), strict=True))


@in_browser
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_their_window_and_can_be_read(width, theme):
    place = WIDTHS.index(width), THEMES.index(theme)
    seen = {name: saw[place[0]][place[1]] for name, saw in seen_pages().items()}
    assert not {name: saw["wide"] for name, saw in seen.items() if saw["wide"]}
    assert not {name: saw["contrast"] for name, saw in seen.items() if saw["contrast"][0] < 4.5}


def searched(words):
    """The pages that a search for each word finds."""
    return look([f"search.html?q={urllib.parse.quote(word)}" for word in words])


@in_browser
def test_search_finds_keywords_first_and_each_page_once():
    pages = {}
    for page, words in KEYWORDS.items():
        for word in words.split(", "):
            pages.setdefault(word, []).append(f"{page}.html")
    for (word, wanted), found in zip(pages.items(), searched(pages), strict=True):
        assert found and found[0] in wanted, (word, found[:3])
        assert found.count(found[0]) == 1, (word, found)


@in_browser
def test_search_finds_what_people_type():
    missed = {}
    for (word, page), found in zip(WORDS.items(), searched(WORDS), strict=True):
        first = found[:10]
        if not first or (page and f"{page}.html" not in first):
            missed[word] = first
    assert not missed
