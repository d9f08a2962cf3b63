/** The size of things on the screen: a page may enlarge a picture as a whole, by the property `zoom` of what is around it. */

/** The enlargement of an element on the screen. */
export function zoomOf(element) {
  return element.currentCSSZoom ?? 1;
}

const known = new Map();

/**
 * The answer to a question about the style of all of a picture, asked once while it is drawn: whoever asks after elements
 * were changed has the page styled anew.
 * @template Answer
 * @param {Element} element any one of the picture
 * @param {(element: Element) => Answer} ask
 * @returns {Answer}
 */
export function askedOnce(element, ask) {
  const picture = element.getRootNode();
  if (known.size === 0) queueMicrotask(() => known.clear());
  if (!known.has(picture)) known.set(picture, new Map());
  const answers = known.get(picture);
  if (!answers.has(ask)) answers.set(ask, ask(element));
  return answers.get(ask);
}

/** The number of screen pixels in one of an element's own. All that is in one picture is enlarged alike. */
export function pixelRatioOf(element) {
  return (window.devicePixelRatio || 1) * askedOnce(element, zoomOf);
}
