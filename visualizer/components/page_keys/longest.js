import { textsOf } from "../shared/texts.js";

const say = textsOf("page_keys/longest");

/**
 * Refuse what would make a text longer than its field takes, and say so beside the field. Streamlit would take it back
 * without a word, after a page of a million words has stood still for seconds.
 * @param {InputEvent} event what is about to be put in
 * @param {Record<string, number>} longest how many characters a field takes, by its key, "" for all others
 */
export function refuseTooLong(event, longest) {
  const { target: field, data } = event;
  if (!(field instanceof HTMLTextAreaElement || field instanceof HTMLInputElement)) return;
  const key = field.closest("[class*=st-key-]")?.className.match(/st-key-(\w+)/)?.[1] ?? "";
  const most = longest[key] ?? longest[""];
  const replaced = (field.selectionEnd ?? 0) - (field.selectionStart ?? 0);
  const length = field.value.length - replaced + (data?.length ?? 0);
  const isTooLong = Boolean(data) && length > most;
  const [taken, counted] = [most, length].map((number) => number.toLocaleString("en"));
  field.setCustomValidity(isTooLong ? say("too_long", { taken, counted }) : "");
  if (!isTooLong) return;
  event.preventDefault();
  field.reportValidity();
}
