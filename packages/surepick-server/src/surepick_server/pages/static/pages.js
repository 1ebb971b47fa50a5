/* What pages do beyond forms and links; all of them work without it.
   Local times; Enter goes to the next field; drafts of typed results stay in this browser; counts beside "Store". */
"use strict";

const day = (at) => new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();

function inWords(at, now) {
  const clock = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const days = Math.round((day(at) - day(now)) / 86400000);
  if (days === 0) return "today " + clock;
  if (days === 1) return "tomorrow " + clock;
  if (days === -1) return "yesterday " + clock;
  const year = at.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return at.toLocaleDateString("en-GB", { day: "numeric", month: "long", year }) + " " + clock;
}

function localTimes(root) {
  for (const one of root.querySelectorAll("time[datetime]")) {
    const at = new Date(one.dateTime);
    if (isNaN(at)) continue;
    one.title = one.dateTime.replace("T", " ").replace("Z", " UTC");
    one.textContent = inWords(at, new Date());
  }
}

/* Results that were typed and not stored: by the key of the measurement, for whoever is logged in. */

const fieldsOf = (form) => [...form.querySelectorAll("[name^='reward.'], [name^='quantity.'], [name^='failed.']")];

function keyOf(form, field) {
  const [kind, place, more] = field.name.split(".");
  const key = form.elements["key." + place];
  return key ? [kind, key.value, more || ""].join(" ") : field.name;
}

function read(form) {
  try {
    return JSON.parse(localStorage.getItem("draft " + form.dataset.draft)) || {};
  } catch {
    return {};
  }
}

function keep(form) {
  const found = {};
  for (const one of fieldsOf(form)) {
    const value = one.type === "checkbox" ? (one.checked ? "yes" : "") : one.value;
    if (value) found[keyOf(form, one)] = value;
  }
  try {
    if (Object.keys(found).length) localStorage.setItem("draft " + form.dataset.draft, JSON.stringify(found));
    else localStorage.removeItem("draft " + form.dataset.draft);
  } catch { /* nothing is kept where nothing may be */ }
}

function fill(form) {
  const drafts = read(form);
  for (const one of fieldsOf(form)) {
    const value = drafts[keyOf(form, one)];
    if (value === undefined) continue;
    if (one.type === "checkbox") one.checked = true;
    else if (!one.value) one.value = value;
  }
}

function count(form) {
  const said = form.querySelector("[data-count]"), store = form.querySelector("#store");
  if (!said || !store) return;
  const rows = [...form.querySelectorAll("[name^='reward.']")];
  const isFull = (one) => one.value.trim() !== "" || form.elements["failed." + one.name.split(".")[1]].checked;
  const filled = rows.filter(isFull).length, asks = form.querySelectorAll("[name='asked']:not(:checked)").length;
  const all = Number(form.dataset.all), closes = form.dataset.closes;
  const results = filled === 1 ? "1 result" : filled + " results";
  said.replaceChildren(Object.assign(document.createElement("strong"), { textContent: filled + " of " + all + " filled" }));
  if (asks) said.append(", " + asks + " to check");
  if (closes && filled === all) said.append(". After that nothing of round " + closes + " changes.");
  store.textContent = !filled ? "Store the results" : "Store " + results + (closes && filled === all ? " and close round " + closes : "");
}

function prepare(form) {
  if (form.dataset.ready) return;
  form.dataset.ready = "yes";
  const note = form.closest("section").querySelector("[data-draft-note]");
  if (note) note.textContent = "; a draft is kept on this device";
  fill(form);
  count(form);
  form.addEventListener("input", () => { keep(form); count(form); });
  form.addEventListener("submit", (event) => {
    if (!event.submitter || event.submitter.name !== "mend") localStorage.removeItem("draft " + form.dataset.draft);
  });
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-mends]");
    if (!button) return;
    event.preventDefault();
    const field = document.getElementById(button.dataset.mends);
    field.value = button.value.split(":")[1];
    button.closest("tr").remove();
    field.closest("tr").classList.remove("asks");
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
    keep(form);
    count(form);
    field.focus();
  });
  form.addEventListener("keydown", (event) => {
    const field = event.target;
    if (event.key !== "Enter" || field.tagName !== "INPUT" || field.type === "checkbox") return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) return form.requestSubmit(form.querySelector("#store"));
    const all = [...form.querySelectorAll("input:not([type='hidden'], [type='checkbox'])")];
    const next = all[all.indexOf(field) + 1];
    (next || form.querySelector("#store")).focus();
    if (next) next.select();
  });
}

function begin(root) {
  localTimes(root);
  for (const one of root.querySelectorAll("form[data-draft]")) prepare(one);
}

document.addEventListener("DOMContentLoaded", () => {
  document.documentElement.classList.add("scripts");
  begin(document);
  const alarm = document.querySelector("[data-focus]");
  if (alarm) alarm.focus();
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-sends]")) event.target.form.requestSubmit();
});
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button || !button.dataset.busy || event.defaultPrevented) return;
  setTimeout(() => { button.disabled = true; button.textContent = button.dataset.busy; });
});

/* What an event brings: no region with a form in it goes while somebody types there, unless the study is done. */
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const target = event.detail.target, isOver = document.getElementById("holds")?.value === "over";
  if (target.id === "work" && target.contains(document.activeElement) && !isOver) event.detail.shouldSwap = false;
});
document.addEventListener("htmx:oobAfterSwap", (event) => begin(event.detail.target));
document.addEventListener("htmx:afterSwap", (event) => begin(event.detail.target));
