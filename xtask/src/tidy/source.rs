//! Rust source as the rules see it: without comments, literals and tests, cut into tokens.
//!
//! This is no parser. It knows what can hide a brace or a name, and nothing else.

use std::path::{Path, PathBuf};

/// Replaces comments and string and character literals by spaces; lines stay where they are.
pub fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_word = false;
    while let Some(next) = rest.chars().next() {
        // The `r` of `for"x"` starts no raw string, that of `(r"x"` does.
        let hidden = hidden(rest, in_word);
        let length = hidden.unwrap_or(next.len_utf8());
        let (piece, remainder) = rest.split_at(length);
        match hidden {
            Some(_) => code.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' })),
            None => code.push_str(piece),
        }
        in_word = hidden.is_none() && (next.is_alphanumeric() || next == '_');
        rest = remainder;
    }
    code
}

/// Length of the comment or literal that `rest` starts with.
fn hidden(rest: &str, in_word: bool) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment(rest));
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    let prefix = match rest.find(|c| !matches!(c, 'b' | 'c' | 'r')) {
        Some(length) if length <= 2 && !(in_word && length > 0) => length,
        _ => return None,
    };
    let raw = rest[..prefix].ends_with('r');
    let hashes = if raw { rest[prefix..].bytes().take_while(|b| *b == b'#').count() } else { 0 };
    let body = prefix + hashes + 1;
    if !rest[prefix + hashes..].starts_with('"') {
        return None;
    }
    if raw {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len()));
    }
    Some(body + closing(&rest[body..], '"'))
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    loop {
        let tail = &rest[at..];
        if tail.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if tail.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            match tail.chars().next() {
                Some(c) => at += c.len_utf8(),
                None => return at,
            }
        }
    }
}

/// A character literal, or nothing for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let body = &rest[1..];
    let first = body.chars().next()?;
    let literal = first == '\\' || body[first.len_utf8()..].starts_with('\'');
    literal.then(|| 1 + closing(body, '\''))
}

/// Length up to and with the closing quote; a backslash hides one character.
fn closing(body: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    body.len()
}

/// Attributes that keep an item out of what ships; features such as `fuzzing` stand beside `test` in an `any`.
const TEST_MARKS: [&str; 4] = ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(any(test", "#[test]"];

/// Replaces the items of tests by spaces; `code` is blanked.
pub fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = TEST_MARKS.iter().filter_map(|mark| rest.find(mark)).min() {
        let (before, item) = rest.split_at(at);
        let (item, after) = item.split_at(item_length(item));
        kept.push_str(before);
        kept.extend(item.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = after;
    }
    kept + rest
}

/// Length of the item up to its semicolon or closing brace.
fn item_length(item: &str) -> usize {
    let mut depth = 0u32;
    for (at, c) in item.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// The modules in files of their own that are tests, as paths without `.rs`; `code` is the blanked text of `path`.
pub fn test_modules(path: &Path, code: &str) -> Vec<PathBuf> {
    let folder = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") => path.parent().unwrap_or(Path::new("")).to_path_buf(),
        _ => path.with_extension(""),
    };
    let mut modules = Vec::new();
    for mark in TEST_MARKS {
        for (at, _) in code.match_indices(mark) {
            let item = &code[at..at + item_length(&code[at..])];
            let name = item.strip_suffix(';').and_then(|item| item.rsplit_once("mod ")).map(|(_, name)| name.trim());
            modules.extend(name.map(|name| folder.join(name)));
        }
    }
    modules
}

/// Whether the file is one of these modules or lies in one.
pub fn is_test_file(path: &Path, modules: &[PathBuf]) -> bool {
    let path = path.with_extension("");
    modules.iter().any(|module| path.starts_with(module))
}

/// A word, a `::`, or one other character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Counted from 1.
    pub line: usize,
    /// As written.
    pub text: &'a str,
}

impl Token<'_> {
    /// A name, a keyword or a number.
    pub fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
    }
}

/// Cuts blanked code into tokens.
pub fn tokens(code: &str) -> impl Iterator<Item = Token<'_>> {
    code.lines().enumerate().flat_map(|(index, line)| {
        let mut rest = line.trim_start();
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let length = match word {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                _ => word,
            };
            let (text, after) = rest.split_at(length);
            rest = after.trim_start();
            Some(Token { line: index + 1, text })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of the text, without spaces.
    fn left(text: &str) -> String {
        let code = blank(text);
        assert_eq!(code.lines().count(), text.lines().count());
        code.split_whitespace().collect()
    }

    #[test]
    fn comments_vanish() {
        assert_eq!(left("a // b \" c\nd"), "ad");
        assert_eq!(left("a /* b /* c */ \n d */ e"), "ae");
        assert_eq!(left("/* open"), "");
    }

    #[test]
    fn literals_vanish() {
        assert_eq!(left(r#"a("b\"c", d)"#), "a(,d)");
        assert_eq!(left("a(r\"b\\\", r#\"c\"d\"#, br\"e\", b\"f\", c\"g\")"), "a(,,,,)");
        assert_eq!(left("a('{', '\\'', b'}', '\\u{7f}')"), "a(,,b,)");
    }

    #[test]
    fn names_stay() {
        assert_eq!(left("fn a<'a>(b: &'a str) { r#type(c) }"), "fna<'a>(b:&'astr){r#type(c)}");
        assert_eq!(left("for r in bar {}"), "forrinbar{}");
    }

    #[test]
    fn tests_vanish() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { c() }\n}\nfn e() {}\n";
        let kept = without_tests(code);
        assert_eq!(kept.lines().count(), code.lines().count());
        assert_eq!(kept.split_whitespace().collect::<String>(), "fna(){}fne(){}");
        assert_eq!(without_tests("#[cfg(test)]\nmod tests;\nfn a() {}").trim(), "fn a() {}");
        assert_eq!(without_tests("#[cfg(any(unix, test))]\nmod f;"), "#[cfg(any(unix, test))]\nmod f;");
    }

    #[test]
    fn test_modules_in_files_of_their_own() {
        let code = "mod node;\n#[cfg(test)]\nmod scenarios;\n#[cfg(any(test, feature = x))]\npub mod fuzzing;\n";
        let modules = test_modules(Path::new("src/lib.rs"), code);
        assert_eq!(modules, [Path::new("src/scenarios"), Path::new("src/fuzzing")]);
        assert!(is_test_file(Path::new("src/scenarios.rs"), &modules));
        assert!(is_test_file(Path::new("src/fuzzing/ranges.rs"), &modules));
        assert!(!is_test_file(Path::new("src/node.rs"), &modules));
        let modules = test_modules(Path::new("src/node.rs"), "#[cfg(test)]\nmod tests { fn a() { b(); } }");
        assert!(modules.is_empty());
        assert_eq!(test_modules(Path::new("src/node.rs"), "#[cfg(test)]\nmod t;"), [Path::new("src/node/t")]);
    }

    #[test]
    fn tokens_know_their_lines() {
        let list: Vec<_> = tokens("use a::b;\nc").map(|t| (t.line, t.text)).collect();
        assert_eq!(list, [(1, "use"), (1, "a"), (1, "::"), (1, "b"), (1, ";"), (2, "c")]);
    }
}
