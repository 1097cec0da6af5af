// The choice between light, dark and the setting of the system, and where the browser stores it.

const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];
const KEY = "eirkit-theme";

export function offerThemes(place: HTMLElement | null): void {
  if (!place) return;
  const chosen = recalled();
  const buttons = THEMES.map((theme) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = theme;
    button.addEventListener("click", () => choose(theme, buttons));
    return button;
  });
  place.append(...buttons);
  place.hidden = false;
  choose(chosen, buttons);
}

function choose(theme: Theme, buttons: HTMLButtonElement[]): void {
  document.documentElement.dataset.theme = theme;
  for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === theme));
  try {
    window.localStorage.setItem(KEY, theme);
  } catch {
    // A page opened from disk may have no storage; it then follows the system.
  }
}

function recalled(): Theme {
  try {
    const kept = window.localStorage.getItem(KEY);
    return THEMES.find((theme) => theme === kept) ?? "auto";
  } catch {
    return "auto";
  }
}
