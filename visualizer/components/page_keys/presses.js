const SLIP = 6; // pixels by which a pointer moves while it presses one place
const PRESSED = "button, label, summary";

/**
 * Have a control of Streamlit do what it is pressed for, though the page moves it or draws it anew before the pointer
 * is up, as with a text that was typed right before: the browser would say nothing of the press.
 * @param {PointerEvent} down
 */
export function keepPress(down) {
  const pressed = down.target instanceof Element && down.target.closest(PRESSED);
  if (!pressed || down.button) return;
  const [name, text] = [nameOf(pressed), pressed.textContent];
  /** @param {PointerEvent} up */
  const finish = (up) => {
    const slip = Math.hypot(up.clientX - down.clientX, up.clientY - down.clientY);
    if (up.pointerId !== down.pointerId || slip > SLIP || pressed.contains(/** @type {Node} */ (up.target))) return;
    const offered = pressed.isConnected ? [pressed] : [...document.querySelectorAll(PRESSED)];
    const same = offered.find((each) => each.textContent === text && nameOf(each) === name);
    if (same instanceof HTMLElement) same.click();
  };
  addEventListener("pointerup", finish, { capture: true, once: true });
}

/** The key of a control, without the number that it has where it was given another value. @param {Element} control */
function nameOf(control) {
  return control.closest("[class*=st-key-]")?.className.match(/st-key-[\w-]+?(?=-\d+\b|\s|$)/)?.[0];
}
