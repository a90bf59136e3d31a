use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Format;

fn key(dotted: &str) -> Vec<String> {
    dotted.split('.').map(str::to_owned).collect()
}

#[track_caller]
fn check(format: Format, text: &str, at: &str, value: Value, expected: &Expect) {
    let edited = format.set(text, &key(at), Some(&value)).unwrap();
    expected.assert_eq(&edited);
    assert_eq!(format.get(&edited, &key(at)).unwrap(), Some(value));
}

#[test]
fn json_keeps_comments_order_and_layout() {
    let text =
        "{\n  // my model\n  \"model\": \"opus\",\n  \"env\": { \"A\": \"1\" /* one */ },\n}\n";
    check(
        Format::Json,
        text,
        "env.ANTHROPIC_BASE_URL",
        json!("http://x"),
        &expect![[r#"
            {
              // my model
              "model": "opus",
              "env": {
                "A": "1", /* one */
                "ANTHROPIC_BASE_URL": "http://x"
              },
            }
        "#]],
    );
}

#[test]
fn an_empty_file_becomes_json() {
    check(
        Format::Json,
        "",
        "mcp.ctx",
        json!({ "command": ["ctx", "mcp"] }),
        &expect![[r#"
            {
              "mcp": {
                "ctx": {
                  "command": ["ctx", "mcp"]
                }
              }
            }
        "#]],
    );
}

#[test]
fn toml_keeps_comments_and_odd_layout() {
    let text = "# mine\nmodel   =   'gpt-5' # best\n\n\n[profiles.x]\n  a = 1\n";
    check(
        Format::Toml,
        text,
        "openai_base_url",
        json!("http://x/v1"),
        &expect![[r#"
            # mine
            model   =   'gpt-5' # best
            openai_base_url = "http://x/v1"


            [profiles.x]
              a = 1
        "#]],
    );
    let text = "[model_providers.my]\nbase_url = \"http://old/v1\" # ours\nname = \"my\"\n";
    check(
        Format::Toml,
        text,
        "model_providers.my.base_url",
        json!("http://x/v1"),
        &expect![[r#"
            [model_providers.my]
            base_url = "http://x/v1" # ours
            name = "my"
        "#]],
    );
    check(
        Format::Toml,
        "model = \"m\"\n",
        "mcp_servers.ctx",
        json!({ "command": "ctx", "args": ["mcp"] }),
        &expect![[r#"
            model = "m"

            [mcp_servers.ctx]
            command = "ctx"
            args = ["mcp"]
        "#]],
    );
}

#[test]
fn lines_keep_their_neighbours() {
    check(
        Format::DotEnv,
        "GEMINI_API_KEY=secret\nexport OPENAI_BASE_URL = \"http://old\" # why\n# end",
        "OPENAI_BASE_URL",
        json!("http://x/v1"),
        &expect![[r#"
            GEMINI_API_KEY=secret
            export OPENAI_BASE_URL=http://x/v1 # why
            # end"#]],
    );
    check(
        Format::Yaml,
        "model: gpt\nnested:\n  openai-api-base: no",
        "openai-api-base",
        json!("http://x/v1"),
        &expect![[r#"
            model: gpt
            nested:
              openai-api-base: no
            openai-api-base: http://x/v1
        "#]],
    );
}

#[test]
fn malformed_files_are_errors() {
    for (format, text) in
        [(Format::Json, "{\"a\": }"), (Format::Toml, "a = = 1"), (Format::Json, "{} {}")]
    {
        let error = format.set(text, &key("a.b"), Some(&json!("x"))).unwrap_err();
        assert_eq!(error.kind(), ctx_core::ErrorKind::Corrupt, "{error}");
    }
    for (format, text) in
        [(Format::Json, "{\"env\": 3}"), (Format::Toml, "env = 3"), (Format::Json, "[]")]
    {
        let error = format.set(text, &key("env.A"), Some(&json!("x"))).unwrap_err();
        assert_eq!(error.kind(), ctx_core::ErrorKind::Conflict, "{error}");
    }
}

/// Texts with the key and without, in each format.
fn samples() -> impl Strategy<Value = (Format, String)> {
    let json = prop::collection::vec(
        "(// [a-z ]{0,8}|/\\* [a-z]* \\*/|  \"[a-d]\": (1|\"x\"|\\{ \"z\": 2 \\}),)",
        0..6,
    );
    let toml = prop::collection::vec("(# [a-z ]{0,8}|[a-d]{1,3} *= *(1|'x')|)", 0..6);
    let lines = prop::collection::vec("(# [a-z ]{0,8}|[A-D]{1,3}=[a-z]{0,4}|)", 0..6);
    prop_oneof![
        json.prop_map(|lines| (Format::Json, format!("{{\n{}\n}}\n", lines.join("\n")))),
        toml.prop_map(|lines| (Format::Toml, lines.join("\n"))),
        lines.prop_map(|lines| (Format::DotEnv, lines.join("\n"))),
    ]
}

proptest! {
    #[test]
    fn what_is_set_is_read_and_can_be_removed((format, text) in samples()) {
        let key = match format {
            Format::DotEnv => key("NEW_KEY"),
            _ => key("new.key"),
        };
        let Ok(edited) = format.set(&text, &key, Some(&json!("http://x"))) else { return Ok(()) };
        prop_assert_eq!(format.get(&edited, &key).unwrap(), Some(json!("http://x")));
        for line in text.lines().filter(|line| line.contains('#') || line.contains("//")) {
            prop_assert!(edited.contains(line.trim()), "{edited}");
        }
        let without = format.set(&edited, &key, None).unwrap();
        prop_assert_eq!(format.get(&without, &key).unwrap(), None);
        prop_assert!(!without.contains("http://x"));
    }
}

#[test]
fn a_byte_order_mark_stays_and_is_not_part_of_a_name() {
    for (format, text, name) in [
        (Format::Json, "\u{feff}{\"a\": \"1\"}", "a"),
        (Format::Toml, "\u{feff}a = '1'\r\n", "a"),
        (Format::DotEnv, "\u{feff}A=1\r\n", "A"),
        (Format::Yaml, "\u{feff}a: 1\n", "a"),
    ] {
        let key = [name.to_owned()];
        assert_eq!(format.get(text, &key).unwrap().unwrap(), "1", "{format:?}");
        let edited = format.set(text, &key, Some(&"2".into())).unwrap();
        assert_eq!(edited.matches('\u{feff}').count(), 1, "{edited:?}");
        assert!(edited.starts_with('\u{feff}') && !edited.contains('1'), "{edited:?}");
    }
}

#[test]
fn an_error_is_one_line_that_says_where() {
    let key = ["a".to_owned()];
    let error = Format::Toml.get("a = 1\na = 2\n", &key).unwrap_err().to_string();
    assert_eq!(error, "the file is not valid TOML: duplicate key, in line 2");
    let error = Format::Json.set("[1]", &key, Some(&"2".into())).unwrap_err().to_string();
    assert_eq!(error, "the file is not a table");
}

#[test]
fn yaml_that_is_not_lines_of_names_is_left_alone() {
    let set = |text| Format::Yaml.set(text, &key("a"), Some(&json!("x")));
    for text in ["{model: m}\n", "[]\n", "b: 1\n...\n", "  b: 1\n", "# c\n\"a\": 1\n"] {
        assert!(set(text).unwrap_err().to_string().contains("not read"), "{text}");
    }
    assert_eq!(set("--- # mine\nb:\n  - 1\n").unwrap(), "--- # mine\nb:\n  - 1\na: x\n");
}
