// Markdown as nodes: headings, lists, quotes, code, emphasis. Texts are text, links are text with their address, and nothing
// else of a text has a meaning. A table stays as it was written.
const INLINE = /(`+)(?<code>.+?)\1(?!`)|\*\*(?<strong>[^\s*](?:.*?[^\s*])?)\*\*|(?<![\w*])\*(?<em>[^\s*](?:.*?[^\s*])?)\*(?!\*)|(?<!\w)_(?<under>[^\s_](?:.*?[^\s_])?)_(?!\w)|\[(?<text>[^\]]+)\]\((?<address>[^)\s]+)\)/s;
const ITEM = /^(\s*)(?:[-*+]|\d+[.)])\s+(.*)$/;

export function markdown(text) {
  const box = document.createElement("div"), lines = text.split("\n");
  box.className = "md";
  let paragraph = [], items = null;
  const node = (tag, of = []) => { const made = document.createElement(tag); made.append(...of); box.append(made); return made; };
  const flush = () => { if (paragraph.length) node("p", inline(paragraph.join("\n"))); paragraph = []; items = null; };
  for (let i = 0; i < lines.length; i += 1) {
    const line = lines[i], fence = /^\s*(```+|~~~+)/.exec(line), heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line), item = ITEM.exec(line);
    if (fence) {
      flush();
      const code = [];
      for (i += 1; i < lines.length && !lines[i].trim().startsWith(fence[1]); i += 1) code.push(lines[i]);
      node("pre", [code.join("\n")]);
    } else if (heading) {
      flush();
      node("h4", inline(heading[2]));
    } else if (item) {
      if (!items) { flush(); items = node(/^\s*\d/.test(line) ? "ol" : "ul"); }
      const one = document.createElement("li");
      one.style.marginLeft = Math.min(item[1].length, 12) / 2 + "em";
      one.append(...inline(item[2]));
      items.append(one);
    } else if (/^\s*\|/.test(line)) {
      flush();
      const rows = [line];
      while (/^\s*\|/.test(lines[i + 1] ?? "")) rows.push(lines[i += 1]);
      node("pre", [rows.join("\n")]);
    } else if (/^\s*>/.test(line)) {
      flush();
      node("blockquote", inline(line.replace(/^\s*>\s?/, "")));
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      flush();
      node("hr");
    } else if (!line.trim()) flush();
    else if (items && /^\s/.test(line)) items.lastChild.append("\n", ...inline(line.trim()));
    else { if (items) flush(); paragraph.push(line); }
  }
  flush();
  return box;
}

function inline(text) {
  const found = [];
  for (let rest = text; rest;) {
    const hit = INLINE.exec(rest);
    if (!hit) { found.push(rest); break; }
    const { code, strong, em, under, text: linked, address } = hit.groups;
    if (hit.index) found.push(rest.slice(0, hit.index));
    if (linked !== undefined) found.push(...inline(linked), ` (${address})`);
    else {
      const made = document.createElement(code !== undefined ? "code" : strong !== undefined ? "strong" : "em");
      made.append(...code !== undefined ? [code.trim()] : inline(strong ?? em ?? under));
      found.push(made);
    }
    rest = rest.slice(hit.index + hit[0].length);
  }
  return found;
}
