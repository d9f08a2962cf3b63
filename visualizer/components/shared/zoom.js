/** The size of things on the screen: a page may enlarge a picture as a whole, by the property `zoom` of what is around it. */

/** The enlargement of an element on the screen. */
export function zoomOf(element) {
  return element.currentCSSZoom ?? 1;
}

const known = new Map(); // by the picture: whoever asks while elements are changed has the page styled anew

/** The number of screen pixels in one of an element's own. All that is in one picture is enlarged alike. */
export function pixelRatioOf(element) {
  const picture = element.getRootNode();
  if (!known.has(picture)) {
    if (known.size === 0) queueMicrotask(() => known.clear());
    known.set(picture, (window.devicePixelRatio || 1) * zoomOf(element));
  }
  return known.get(picture);
}
