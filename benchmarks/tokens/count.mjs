// The tokens of each text of a JSON array on standard input, by o200k_base, as a JSON array.
import { readFileSync } from "node:fs";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";

const texts = JSON.parse(readFileSync(0, "utf-8"));
console.log(JSON.stringify(texts.map((text) => countTokens(text, { allowedSpecial: "all" }))));
