// The token of a server that wants one: asked for on a page of its own, kept for this tab only, sent with every question.

const KEY = "fewer-token";

export function authorization() {
  const token = sessionStorage.getItem(KEY);
  return token ? { authorization: `Bearer ${token}` } : {};
}

// Where to go on after the token has been given: a page of this server, never elsewhere.
function next() {
  const asked = new URLSearchParams(location.search).get("next") || "/";
  return /^\/[\w-]*$/.test(asked) ? asked : "/";
}

export function askForToken() {
  sessionStorage.removeItem(KEY);
  if (location.pathname !== "/token") location.assign(`/token?next=${encodeURIComponent(location.pathname)}`);
}

async function enter(event) {
  event.preventDefault();
  const trouble = document.getElementById("trouble");
  const token = document.getElementById("token").value.trim();
  const answer = await fetch("/v1/tasks", { headers: { authorization: `Bearer ${token}` } }).catch(() => null);
  trouble.hidden = answer !== null && answer.ok;
  if (!trouble.hidden) {
    trouble.textContent = answer === null ? "The server does not answer." : "That is not the token.";
    return;
  }
  sessionStorage.setItem(KEY, token);
  location.assign(next());
}

document.getElementById("sign-in")?.addEventListener("submit", enter);
