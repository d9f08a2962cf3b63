/** The size of things on the screen: a page may enlarge a picture as a whole, by the property `zoom` of what is around it. */

/** The enlargement of an element on the screen. @param {Element} element */
export function zoomOf(element) {
  return element.currentCSSZoom ?? 1;
}

/**
 * A question about the style of all of a picture, put once while it is drawn: whoever asks after elements were changed has
 * the page styled anew.
 * @template Answer
 * @param {(element: Element) => Answer} ask
 * @returns {(element: Element) => Answer}
 */
export function askedOnce(ask) {
  const known = new Map(); // by the picture
  return (element) => {
    const picture = element.getRootNode();
    if (known.size === 0) queueMicrotask(() => known.clear());
    if (!known.has(picture)) known.set(picture, ask(element));
    return known.get(picture);
  };
}

const zoomOfPicture = askedOnce(zoomOf);

/** The number of screen pixels in one of an element's own. All that is in one picture is enlarged alike.
 *  @param {Element} element */
export function pixelRatioOf(element) {
  return (window.devicePixelRatio || 1) * zoomOfPicture(element);
}
