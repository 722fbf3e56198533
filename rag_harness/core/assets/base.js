"use strict";
// The scripts of all pages begin with this. Strangers' texts become text nodes, never markup.
const { entries, keys } = Object;

/** What would turn the text around, or is no sign, is written out: \u202e. */
const seen = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (one) => "\\u" + one.charCodeAt().toString(16).padStart(4, "0"));

/** Make el("p.note", { title }, "text", [nodes]): plain objects are attributes, what is empty is left out. */
const elements = (shown) => (what, ...inside) => {
	const [tag, ...classes] = what.split("."), node = document.createElement(tag);
	node.classList.add(...classes);
	for (const one of inside.flat(Infinity))
		if (one?.constructor !== Object) node.append(typeof one === "string" ? shown(one) : one || "");
		else for (const [name, value] of entries(one))
			if (name.startsWith("on")) node[name] = value;
			else if (value != null) node.setAttribute(name, value);
	return node;
};
const whole = (n) => n.toLocaleString("en");
const many = (n, one) => `${whole(n)} ${one}${n === 1 ? "" : "s"}`;
