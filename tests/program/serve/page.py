# SPDX-License-Identifier: MIT
"""Clicks through the page of opc serve in a headless Chromium, while a run goes on.

    page.py ADDRESS PICTURES     PICTURES: a directory for screenshots
"""
import sys

from browser import Browser

address, pictures = sys.argv[1:]


def text(browser, selector):
    return browser.run(f"document.querySelector({selector!r})?.textContent ?? ''")


def count(browser, selector):
    return browser.run(f"document.querySelectorAll({selector!r}).length")


def fits(browser):
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "too wide"


b = Browser(1280, 900)
b.open(address)
b.until("document.querySelectorAll('.runs tbody tr').length === 4")
assert "token" not in b.run("location.href"), "the token stays in the address"
assert b.run("document.cookie") == "", "a script can read the cookie"
b.until("!!document.querySelector('.uplot canvas')")
b.until("document.querySelectorAll('.legend li').length >= 2")
assert "(2 runs)" in text(b, ".charts"), text(b, ".charts")
# Methods differ in colour; dashes are for several lines of one.
assert b.run("[...document.querySelectorAll('.legend line')].every(l => !l.getAttribute('stroke-dasharray'))")
# A name that is markup is text.
assert count(b, "img[src=x]") == 0 and "<img src=x" in text(b, ".runs")

# ---- a running training, without a reload ------------------------------------------------------------
b.run("window.notReloaded = true")
row = "[...document.querySelectorAll('.runs tr')].find(r => r.textContent.includes('going'))"
b.until(f"{row}.textContent.includes('running')")
epoch = f"Number({row}.querySelector('.epoch').textContent.split('/')[0])"
before = b.run(epoch)
b.until(f"{epoch} > {before}")
assert b.run("window.notReloaded")
fits(b)
b.screenshot(f"{pictures}/runs.png")

# ---- filters, order and choice, by mouse and by keyboard ---------------------------------------------
b.click("input[type=search]")
b.type("seed:2")
b.until("document.querySelectorAll('.runs tbody tr').length === 1")
b.run("document.querySelector('input[type=search]').select()")
b.key("Delete", 46)
b.run("document.querySelector('input[type=search]').value === '' || document.querySelector('input[type=search]')"
      ".dispatchEvent(new Event('input'))")
b.until("document.querySelectorAll('.runs tbody tr').length === 4")
b.click(".chip:nth-child(2)")
b.until("document.querySelectorAll('.runs tbody tr').length === 1")
assert "going" in text(b, ".runs tbody")
b.run("document.querySelector('.chip').focus()")
b.key("Enter", 13)
b.until("document.querySelectorAll('.runs tbody tr').length === 4")
b.run("[...document.querySelectorAll('th button')].find(e => e.textContent.startsWith('seed')).id = 'by-seed'")
b.click("#by-seed")
b.until("document.querySelector('.runs tbody tr').textContent.includes('s2')")
b.click(".runs tbody tr input")
b.until("document.querySelector('[role=status].soft').textContent.includes('1 chosen')")
b.until("document.querySelectorAll('.legend li').length === 1")

# ---- one run -----------------------------------------------------------------------------------------
b.click(".runs tbody tr td.name a")
b.until("document.querySelectorAll('.uplot').length >= 5")
assert "On-policy model error" in text(b, ".charts") and "Critics" in text(b, ".charts")
b.until("document.querySelector('.log').textContent.includes('epoch 3 of 3')")
b.until("document.querySelectorAll('.settings tr').length > 50")
b.click("#changed")
b.until("document.querySelectorAll('.settings tr').length < 50")
b.until("[...document.querySelectorAll('.settings')].some(e => e.textContent.includes('opc.transition') && e.textContent.includes('learned'))")
b.until("!!document.querySelector('figure img')?.naturalWidth")
fits(b)
b.screenshot(f"{pictures}/run.png")

# ---- sweeps, and the other theme ---------------------------------------------------------------------
b.click("[data-view=sweeps]")
b.until("!!document.querySelector('.grid .cell')")
assert "of 4 done" in text(b, "main"), text(b, "main")
theme = b.run("document.documentElement.dataset.theme")
b.click("#theme")
b.click("#theme")
assert b.run("document.documentElement.dataset.theme") != theme
b.screenshot(f"{pictures}/sweeps.png")
# Everything that can be clicked can be reached by the keyboard and has a name.
assert b.run("[...document.querySelectorAll('a, button, input, select')].every(e => e.tabIndex >= 0 &&"
             " (e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length))")

# ---- the width of a phone ----------------------------------------------------------------------------
b.size(390, 844)
for view, ready in (("#/", ".runs tbody tr"), ("#/run/0", ".facts"), ("#/sweeps", ".grid")):
    b.run(f"location.hash = {view!r}")
    b.until(f"!!document.querySelector({ready!r})")
    fits(b)
b.run("location.hash = '#/'")
b.until("!!document.querySelector('.uplot canvas')")
b.screenshot(f"{pictures}/phone.png")
found = b.complaints()
b.close()
assert not found, found
print("the page works, at the width of a desk and of a phone, and nothing complains")
