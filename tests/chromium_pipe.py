"""A small driver of headless Chromium: the DevTools protocol over its own pipe, nothing to install."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

# The browser talks on descriptors 3 and 4: put ours there (by way of higher ones, they may be 3 and 4 themselves).
_LAUNCH = """
import fcntl, os, sys
high = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 50) for number in sys.argv[1:3]]
os.dup2(high[0], 3), os.dup2(high[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Chromium:
    """One page in one browser. `requests` and `complaints` collect what went out and what went wrong."""

    def __init__(self, binary: str):
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._loaded = False
        self._number = 0
        self._rest = b""
        self._profile = tempfile.mkdtemp(prefix="wayveil-chromium-")
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
                   "--no-first-run", "--disable-background-networking", "--disable-component-update",
                   "--remote-debugging-pipe", f"--user-data-dir={self._profile}", "about:blank"]  # fmt: skip
        pair = [str(to_browser), str(from_browser)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, *pair, binary, *options], pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def send(self, method: str, **parameters):
        """Call a method and wait for its answer; events on the way are kept."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(300)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self, seconds: float) -> dict:
        until = time.monotonic() + seconds
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self._in, 1 << 20) if ready else b""
            if not piece:
                raise TimeoutError("Chromium does not answer.")
            self._rest += piece
        line, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method, parameters) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.javascriptDialogOpening":  # a page with unsaved changes asks before it is left
            self._number += 1
            accept = {"id": self._number, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
            os.write(self._out, json.dumps(accept | {"sessionId": self._session}).encode() + b"\0")
        elif method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters["args"])[:500])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])

    def size(self, width: int, height: int, phone: bool = False) -> None:
        """Set the size of the window; a phone has two dots a pixel and touch."""
        parameters = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self.send("Emulation.setDeviceMetricsOverride", **parameters)

    def colours(self, scheme: str) -> None:
        """Set the system's preference: light or dark."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address: str) -> None:
        """Load a page and wait until it has been painted."""
        self._loaded = False
        self.send("Page.navigate", url=address)
        until = time.monotonic() + 300
        while not self._loaded:
            self._receive(max(0.0, until - time.monotonic()))
        self.settle()

    def settle(self) -> None:
        """Wait for two frames: whatever an event asked for has been painted."""
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
        self.ask(frames)

    def ask(self, script: str):
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key where the focus is."""
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **extra)
        self.settle()

    def mouse(self, kind: str, x: float, y: float, **more) -> None:
        """A mouse event: mousePressed, mouseMoved, mouseReleased or mouseWheel."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self, full: bool = False) -> bytes:
        """A PNG of the window, or of the whole page."""
        import base64

        parameters = {"format": "png"}
        if full:
            area = self.send("Page.getLayoutMetrics")["cssContentSize"]
            parameters |= {"captureBeyondViewport": True, "clip": {**area, "x": 0, "y": 0, "scale": 1}}
        return base64.b64decode(self.send("Page.captureScreenshot", **parameters)["data"])
