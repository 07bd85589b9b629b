//! The bytes of a record in JSON; names of others on a terminal.

use data_encoding::BASE64;
use serde_json::{Value, json};

/// An object with the body as `text` if it is UTF-8, else as `base64`.
pub fn json(body: &[u8]) -> Value {
    match std::str::from_utf8(body) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "base64": BASE64.encode(body) }),
    }
}

/// A name that somebody else has chosen, without what a terminal would obey: control characters, and marks that change
/// the direction of writing.
pub fn printable(name: &str) -> String {
    let obeyed = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let shown = |c: char| if obeyed(c) { c.escape_default().to_string() } else { c.to_string() };
    name.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_nothing_to_a_terminal() {
        assert_eq!(printable("logs/ä \u{1f600}"), "logs/ä \u{1f600}");
        assert_eq!(printable("\x1b]0;x\x07\u{9b}2J\n\u{202e}"), "\\u{1b}]0;x\\u{7}\\u{9b}2J\\n\\u{202e}");
    }
}
