"""Debian's Chromium without a screen, driven by its own chromedriver: one for all tests of a file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kube_binaries import program

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PROGRAMS = ("chromium", "chromedriver")
SCREENSHOTS = os.environ.get("STREAMSAPP_TEST_SCREENSHOTS")
"""A folder to keep screenshots in."""
DESKTOP, PHONE = (1280, 900), (375, 812)
_WAIT = 20.0
_SLICE = 0.05


_LOW_CONTRASTS = """
const part = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = text => {
  const [r, g, b] = text.match(/[\\d.]+/g).map(v => part(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = each => {
  for (; each; each = each.parentElement) {
    const found = getComputedStyle(each).backgroundColor;
    if (!/rgba\\(.*, 0\\)/.test(found)) return found;
  }
  return 'rgb(255, 255, 255)';
};
const low = [];
for (const each of document.querySelectorAll('body *')) {
  const own = [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
  if (!own || !each.checkVisibility() || each instanceof SVGElement) continue;
  const [a, b] = [light(getComputedStyle(each).color), light(ground(each))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) low.push(`${each.className} ${each.textContent.trim().slice(0, 30)}: ${ratio.toFixed(1)}`);
}
return low;
"""


class Page:
    """A tab: opened at an address, looked at as a person sees it."""

    def __init__(self, driver: Chrome, folder: Path) -> None:
        self.driver = driver
        self._folder = Path(SCREENSHOTS) if SCREENSHOTS else folder
        self._folder.mkdir(parents=True, exist_ok=True)

    def open(self, url: str, size: tuple[int, int] = DESKTOP, dark: bool = False) -> None:
        """Open the address in a window of this size; nothing of earlier pages is left."""
        self.driver.get("about:blank")
        self._size(*size)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get_log("browser")
        self.driver.get(url)

    def script(self, text: str, *arguments: Any) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(text, *arguments)

    def text(self, selector: str) -> str:
        """All text of the elements that match, as it is seen."""
        found = self.script(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText ?? e.textContent)", selector
        )
        return "\n".join(found)

    def cells(self, selector: str) -> list[list[str]]:
        """The texts of the cells of each row that matches."""
        return self.script(
            "return [...document.querySelectorAll(arguments[0])].map(r => [...r.cells].map(c => c.textContent))",
            selector,
        )

    def sees(self, selector: str) -> bool:
        """Whether an element that matches is shown."""
        return self.script("return document.querySelector(arguments[0])?.checkVisibility() ?? false", selector)

    def low_contrasts(self) -> list[str]:
        """The texts that stand out from their ground less than WCAG asks for (4.5 to 1); drawings are left out."""
        return self.script(_LOW_CONTRASTS)

    def press(self, *keys: str) -> None:
        """Press keys one after the other, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def click(self, selector: str) -> None:
        """Click the first element that matches."""
        self.driver.find_element("css selector", selector).click()

    def fill(self, selector: str, text: str) -> None:
        """Replace what stands in a field."""
        field = self.driver.find_element("css selector", selector)
        field.clear()
        field.send_keys(text)

    def choose(self, selector: str, text: str) -> None:
        """Choose the option with this text."""
        from selenium.webdriver.support.ui import Select

        Select(self.driver.find_element("css selector", selector)).select_by_visible_text(text)

    def wait(self, holds: Callable[[], Any], what: str) -> Any:
        """Wait until it holds; returns what it returned."""
        from selenium.webdriver.support.ui import WebDriverWait

        said = f"waited for {what}; the page says:\n"
        waiting = WebDriverWait(self.driver, _WAIT, _SLICE)
        try:
            return waiting.until(lambda _: holds())
        except Exception as error:
            raise AssertionError(said + self.text("body") + "\n" + str(self.complaints())) from error

    def complaints(self) -> list[str]:
        """What the console has of errors and refused loads."""
        return [each["message"] for each in self.driver.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, name: str, whole: bool = True) -> Path:
        """The page as a picture, with what is below the window too."""
        file = self._folder / f"{name}.png"
        width, height = self.script("return [innerWidth, innerHeight]")
        if whole:
            self._size(width, max(self.script("return document.documentElement.scrollHeight"), height))
            self.script("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert self.driver.save_screenshot(str(file))
        self._size(width, height)
        return file

    def _size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@contextmanager
def chromium() -> Iterator[Chrome]:
    """A browser with a profile of its own, which ends with the block. Debian's packages are installed if need be."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    browser, driver = (str(program(name)) for name in PROGRAMS)
    with tempfile.TemporaryDirectory(prefix="streamsapp-test-chromium-") as profile:
        options = ChromeOptions()
        options.binary_location = browser
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # Without its sandbox, which root can't have; all pages are of these tests.
        for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
            options.add_argument(each)
        for each in ("--disable-background-networking", "--no-first-run", "--disable-extensions"):
            options.add_argument(each)
        options.add_argument(f"--user-data-dir={profile}")
        running = Chrome(options, ChromeService(driver))
        try:
            yield running
        finally:
            running.quit()
