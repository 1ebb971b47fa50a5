// On paper nothing can be opened: open what is short, and close it again afterwards.
for (const [event, open] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(event, () => {
    for (const part of document.querySelectorAll("details:not(.long)")) {
      if (open && !part.open) { part.dataset.opened = "yes"; part.open = true; }
      if (!open && part.dataset.opened) { delete part.dataset.opened; part.open = false; }
    }
  });
}
