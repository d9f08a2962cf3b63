/** How large things are drawn: a page may enlarge a picture as a whole, by the property `zoom` of what is around it. */

/** How much larger an element is on the screen than its own lengths say. */
export function zoomOf(element) {
  return element.currentCSSZoom ?? 1;
}

/** How many pixels of the screen one of an element's own has. */
export function pixelRatioOf(element) {
  return (window.devicePixelRatio || 1) * zoomOf(element);
}
