/** What the monkey can do on a page, and what it compares; every page has it as `monkey`. */
(() => {
  const CONTROLS =
    "button, a[href], input, textarea, summary, canvas, svg, [tabindex='0'], " +
    "[role=button], [role=radio], [role=option], [role=slider], [role=switch], [role=application], [role=treeitem]";
  const SMALLEST_PICTURE = 60; // pixels: what is smaller is an icon

  /** All elements below one, those of shadow trees too. */
  function* within(root) {
    for (const element of root.querySelectorAll("*")) {
      yield element;
      if (element.shadowRoot) yield* within(element.shadowRoot);
    }
  }

  function isWithin(element, selector) {
    for (let from = element; from; from = from.getRootNode().host) if (from.closest(selector)) return true;
    return false;
  }

  /** The key of the nearest container that has one. */
  function groupOf(element) {
    for (let from = element; from; from = from.getRootNode().host) {
      const keyed = from.closest("[class*=st-key-]");
      if (keyed) return /st-key-(\w+)/.exec(keyed.className)[1];
    }
    return "";
  }

  function isShown(element) {
    const { width, height } = element.getBoundingClientRect();
    return width > 2 && height > 2 && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  }

  function isTarget(element) {
    if (!element.matches(CONTROLS) || element.disabled || !isShown(element)) return false;
    if (element.localName !== "svg") return true;
    return !element.closest("button, a") && element.getBoundingClientRect().width > SMALLEST_PICTURE;
  }

  function nameOf(element) {
    const words = element.ariaLabel || element.title || element.textContent || element.type || "";
    return `${element.getAttribute("role") ?? element.localName} ${words.trim().slice(0, 40)}`;
  }

  /** What can be acted on, by group, name and number among those of the same name. */
  function targets(leftAlone) {
    const counts = new Map();
    return [...within(document)]
      .filter((element) => isTarget(element) && !isWithin(element, leftAlone))
      .map((element) => {
        const target = { group: groupOf(element), name: nameOf(element) };
        const key = JSON.stringify(target);
        const nth = counts.get(key) ?? 0;
        counts.set(key, nth + 1);
        return { ...target, nth, element };
      });
  }

  /** The box of a target, brought into sight; null where it is no longer there. */
  function boxOf(wanted, leftAlone) {
    const isWanted = ({ group, name, nth }) => group === wanted.group && name === wanted.name && nth === wanted.nth;
    const element = targets(leftAlone).find(isWanted)?.element;
    if (!element) return null;
    element.scrollIntoView({ block: "center", behavior: "instant" });
    const { left, top, width, height } = element.getBoundingClientRect();
    return [left, top, width, height];
  }

  /** Let go of the focus, close what lies over the page, open what is folded, and scroll back: no link says how far. */
  function tidy() {
    let focused = document.activeElement;
    while (focused?.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement;
    focused?.blur();
    window.dispatchEvent(new Event("blur")); // pictures tell at once what they would tell in a moment
    for (const element of within(document)) {
      if (element.localName === "dialog" && element.open) element.close();
      if (element.matches("[data-testid=stPopoverButton][aria-expanded=true]")) element.click();
      if (element.matches(".stage-map:not([inert]) .all:not([aria-pressed=true])")) element.click();
      if (element.matches("[role=tablist]")) element.querySelector("[role=tab]").click(); // which code is read is in no link
      if (element.scrollLeft || element.scrollTop) element.scrollTo({ left: 0, top: 0, behavior: "instant" });
    }
    if (document.fullscreenElement) document.exitFullscreen();
  }

  const unfolded = new WeakSet();

  /** Whether all that can be folded is open; what is not is opened, once: it opens slowly. */
  function isUnfolded() {
    const folded = [...within(document)].filter((element) => element.localName === "details");
    const moves = (element) => element.getAnimations({ subtree: true }).some(({ playState }) => playState === "running");
    if (folded.some(moves)) return false;
    const closed = folded.filter((element) => !element.open);
    for (const element of closed.filter((one) => !unfolded.has(one))) {
      unfolded.add(element);
      element.querySelector("summary").click();
    }
    return closed.length === 0;
  }

  /** Whether every picture is in words; one that is not is brought into sight, which it may wait for. */
  function isInWords() {
    const busy = [...within(document)].find((element) => element.matches(".reading[aria-busy]"));
    busy?.parentElement.scrollIntoView({ block: "center", behavior: "instant" });
    return !busy;
  }

  /** Fulfilled when the page was scrolled to its end: some pictures wait until they come into sight. */
  async function scrollThrough() {
    for (const element of within(document)) unfolded.delete(element);
    await probe.settled(isUnfolded);
    const main = document.querySelector("[data-testid=stMain]");
    for (let top = 0; top < main.scrollHeight; top += main.clientHeight / 2) {
      main.scrollTo({ top, behavior: "instant" });
      await probe.afterAllElse();
    }
    await probe.settled(isInWords);
    main.scrollTo({ top: 0, behavior: "instant" });
  }

  const hidden = new Map();

  function hide(selector) {
    for (const element of within(document)) {
      if (!element.matches(selector)) continue;
      hidden.set(element, element.style.visibility);
      element.style.visibility = "hidden";
    }
  }

  function showAgain() {
    for (const [element, visibility] of hidden) element.style.visibility = visibility;
    hidden.clear();
  }

  /** One line for each control: its value, and in what state it is. */
  function controls() {
    return [...within(document)]
      .filter((element) => element.matches("input, textarea, select") && element.type !== "file")
      .filter((element) => element.checkVisibility({ visibilityProperty: true }))
      .map((element) => {
        const { value, type, checked, disabled, readOnly, min, max } = element;
        return `${groupOf(element)} ${element.localName} ${JSON.stringify({ value, type, checked, disabled, readOnly, min, max })}`;
      });
  }

  /** One line for each row of a table: tables are drawn, and their cells are in the page for who does not see it. */
  function tables() {
    const rows = [...document.querySelectorAll("[data-testid=stDataFrame] canvas [role=row]")];
    return rows.map((row) => [...row.children].map((cell) => cell.textContent).join(" | "));
  }

  /** A number for the pixels of each canvas but those of tables, beside its place and its size. */
  async function canvases() {
    const isPicture = (element) => element.localName === "canvas" && isShown(element) && !isWithin(element, "[data-testid=stDataFrame]");
    const shown = [...within(document)].filter(isPicture);
    return Promise.all(
      shown.map(async (canvas) => {
        const bytes = new TextEncoder().encode(canvas.toDataURL());
        const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
        const pixels = digest.slice(0, 6).toHex?.() ?? [...digest.slice(0, 6)].join("-");
        return [groupOf(canvas), `${canvas.width} × ${canvas.height}`, pixels];
      }),
    );
  }

  addEventListener(
    "click",
    (event) => {
      const link = event.composedPath().find((element) => element.localName === "a" && element.href);
      if (link && (link.target === "_blank" || !link.href.startsWith(location.origin))) event.preventDefault();
    },
    { capture: true },
  );

  const named = (leftAlone) => targets(leftAlone).map(({ group, name, nth }) => ({ group, name, nth }));
  window.monkey = { targets: named, boxOf, tidy, scrollThrough, hide, showAgain, controls, tables, canvases };
})();
