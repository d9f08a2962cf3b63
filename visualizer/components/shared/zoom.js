/** How large things are drawn: a page may enlarge a picture as a whole, by the property `zoom` of what is around it. */

/** How much larger an element is on the screen than its own lengths say. */
export function zoomOf(element) {
  return element.currentCSSZoom ?? 1;
}

const known = new Map(); // by the picture: whoever asks while elements are changed has the page styled anew

/** How many pixels of the screen one of an element's own has. All that is in one picture is enlarged alike. */
export function pixelRatioOf(element) {
  const picture = element.getRootNode();
  if (!known.has(picture)) {
    if (known.size === 0) queueMicrotask(() => known.clear());
    known.set(picture, (window.devicePixelRatio || 1) * zoomOf(element));
  }
  return known.get(picture);
}
