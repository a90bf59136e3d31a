//! Entities, recognised by their form: files, functions, URLs, error codes, packages, types,
//! people.

use std::sync::LazyLock;

use regex::Regex;

/// The maximum number of entities.
const MOST: usize = 32;

/// The maximum length of an entity.
const LONGEST: usize = 120;

/// One alternative for each kind of entity; the first that matches at a position wins.
/// The crate `regex` does not backtrack, so no text causes exponential time.
static ENTITY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?:https?|wss?|ftp|ssh)://[^\s"'`<>()\[\]{}|\\,，。；]+"#,
        // @ada, @scope/package
        r"|@[A-Za-z][A-Za-z0-9_-]*(?:/[A-Za-z0-9._-]+)?",
        // src/main.rs, ./a/b, C:\a\b, Cargo.toml
        r"|(?:[A-Za-z]:\\|\.{0,2}/)?(?:[A-Za-z0-9_.@-]+[/\\])+[A-Za-z0-9_.@-]+",
        r"|[A-Za-z0-9_-]+\.(?:rs|toml|ts|tsx|js|jsx|mjs|py|go|java|kt|rb|php|c|h|cc|cpp|hpp|cs|swift|md|json5?|ya?ml|sql|sh|css|html|vue|svelte|proto|lock|txt|env|tf|ini|cfg|xml|csv|ipynb)\b",
        // std::mem::take, a.b.c(), parse_line()
        r"|[A-Za-z_][A-Za-z0-9_]*(?:(?:::|\.|->)[A-Za-z_][A-Za-z0-9_]*)*\(\)",
        r"|[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)+",
        // E0425, ERR_MODULE_NOT_FOUND, ENOENT, HTTP 404, CVE-2024-1234, PROJ-123
        r"|\b(?:E\d{4}|TS\d{4}|CVE-\d{4}-\d+|ERR_[A-Z_]+|E[A-Z]{4,}|SQLSTATE\[?[0-9A-Z]{5}|HTTP \d{3}|[A-Z]{2,10}-\d+)\b",
        r"|\b[A-Z][a-z]+(?:Error|Exception)\b",
        // serde@1.2, left-pad==1.3.0
        r"|\b[a-z][a-z0-9_-]+(?:@|==)\d[\w.]*",
        // HttpClient, getUserName, snake_case_name, MAX_SIZE
        r"|\b[A-Z]+[a-z0-9]+(?:[A-Z]+[a-z0-9]*)+\b|\b[a-z]+[a-z0-9]*(?:[A-Z][a-z0-9]+)+\b",
        r"|\b[A-Za-z][a-z0-9]*(?:_[a-z0-9]+)+\b|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b",
    ))
    .ok()
});

pub(super) fn find(text: &str) -> Vec<String> {
    let Some(entity) = ENTITY.as_ref() else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    for matched in entity.find_iter(text) {
        let entity = matched.as_str().trim_end_matches(['.', ',', ':', ';', '!', '?', '/']);
        let before = text.get(..matched.start()).and_then(|before| before.chars().next_back());
        // ada@example.com does not contain @example.
        let inside = entity.starts_with('@') && before.is_some_and(char::is_alphanumeric);
        if entity.len() < 3 || entity.len() > LONGEST || inside {
            continue;
        }
        if !found.iter().any(|known| known == entity) {
            found.push(entity.to_owned());
        }
        if found.len() == MOST {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_entity_is_found() {
        let text = "See https://example.com/a?b=1, src/lib.rs and Cargo.toml: parse_line() in \
                    std::mem::take gave E0425 and ENOENT. HttpClient calls getUserName; @ada-l \
                    bumped serde@1.0 and @scope/pkg; TypeError, PROJ-12, MAX_SIZE.";
        let expected = [
            "https://example.com/a?b=1",
            "src/lib.rs",
            "Cargo.toml",
            "parse_line()",
            "std::mem::take",
            "E0425",
            "ENOENT",
            "HttpClient",
            "getUserName",
            "@ada-l",
            "serde@1.0",
            "@scope/pkg",
            "TypeError",
            "PROJ-12",
            "MAX_SIZE",
        ];
        assert_eq!(find(text), expected);
        assert_eq!(
            find("在 src/支付.rs 之前看 webhook.ts，问 @小明 和 @bob"),
            ["webhook.ts", "@bob"]
        );
    }

    #[test]
    fn entities_are_limited_and_listed_once() {
        let text: String = (0..1_000).map(|n| format!("file_{n}.rs file_0.rs ")).collect();
        assert_eq!(find(&text).len(), MOST);
        assert_eq!(find("a.rs a.rs a.rs"), ["a.rs"]);
        assert!(find("just words, and ada@example.com").iter().all(|e| !e.starts_with('@')));
    }
}
