use super::*;

fn redact(text: &str) -> String {
    let once = Redactor::builtin().redact(text).text.into_owned();
    let again = Redactor::builtin().redact(&once);
    assert_eq!(again.text, once, "a redacted text stays as it is");
    once
}

#[test]
fn every_pattern_compiles() {
    for row in Redactor::builtin().table.rows() {
        assert!(row.compile().is_ok(), "{}", row.name());
    }
}

#[test]
fn markers_name_the_kind_of_secret() {
    let key = "ghp_x7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0gH2jKm";
    for (text, expected) in [
        (format!("token: {key}"), "token: [redacted:github-token]"),
        (
            format!("see {key}, and {key}"),
            "see [redacted:github-token], and [redacted:github-token]",
        ),
        ("password: \"hunter2!\"".to_owned(), "password: \"[redacted:password]\""),
        (
            "postgres://shop:s3cr3tpw@db/shop".to_owned(),
            "postgres://shop:[redacted:url-password]@db/shop",
        ),
        ("postgres://u:p@ss:w0rdAt@h/db".to_owned(), "postgres://u:[redacted:url-password]@h/db"),
        (
            "postgres://u:pw@s.s:9@h.example.com:5432/db".to_owned(),
            "postgres://u:[redacted:url-password]@h.example.com:5432/db",
        ),
        ("API_KEY=Unq_1234567890abcdef".to_owned(), "API_KEY=[redacted:secret]"),
        ("API_KEY='Quot_1234567890abcdef'".to_owned(), "API_KEY='[redacted:secret]'"),
        (
            "we use this export DB_PASS=ExportedPw_7766, always".to_owned(),
            "we use this export DB_PASS=[redacted:password], always",
        ),
        (
            "run it with DB_PASSWORD=correcthorse99 please".to_owned(),
            "run it with DB_PASSWORD=[redacted:password] please",
        ),
        (
            "DB_PASSWORD=required, DB_PASSWORD=changeme1 too".to_owned(),
            "DB_PASSWORD=required, DB_PASSWORD=changeme1 too",
        ),
        ("密码：hunter2!".to_owned(), "密码：[redacted:password]"),
        (
            "SECRET_KEY_BASE=\"YfDX3k9Qw7Zr2Lm8Vt5Np1Hs6Bc4Jd0G!@#\"".to_owned(),
            "SECRET_KEY_BASE=\"[redacted:secret]\"",
        ),
        ("数据库的密码是：ncz8Kp2Vx9。".to_owned(), "数据库的密码是：[redacted:password]。"),
        ("口令为“XtPA-7734”，勿外传".to_owned(), "口令为“[redacted:password]”，勿外传"),
        ("密码是\"hunter2!\"".to_owned(), "密码是\"[redacted:password]\""),
        ("nothing here".to_owned(), "nothing here"),
    ] {
        assert_eq!(redact(&text), expected);
    }
}

#[test]
fn a_text_without_secrets_is_not_copied() {
    let redacted = Redactor::builtin().redact("the token count is 12");
    assert!(matches!(redacted.text, Cow::Borrowed(_)));
    assert_eq!(redacted.found, 0);
}

#[test]
fn a_secret_cut_off_at_the_end_of_a_text_is_redacted() {
    let torn = "-----BEGIN RSA PRIVATE KEY-----\n\
                MIIEowIBAAKCAQEAx7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0gH2jKm\nMIIEow";
    assert_eq!(redact(torn), "[redacted:private-key]");
    assert_eq!(redact("{\"api_key\": \"x7Kq2LmN9pR4sT6v"), "{\"api_key\": \"[redacted:secret]");
    let long = format!("api_key={}", "x7Kq2LmN9pR4".repeat(2_000));
    assert_eq!(redact(&long), "api_key=[redacted:secret]");
}

#[test]
fn a_value_is_found_in_json_escaped_several_times() {
    let mut text = r#"{"client_secret":"x7Kq2LmN9pR4sT6vW8yZ"}"#.to_owned();
    for depth in 0..5 {
        let redacted = redact(&text);
        assert!(!redacted.contains("x7Kq2LmN"), "{depth}: {redacted}");
        assert!(redacted.contains("client_secret") && redacted.ends_with('}'), "{redacted}");
        text = serde_json::json!({ "arguments": text }).to_string();
    }
}

#[test]
fn the_second_half_of_a_key_is_found_by_its_end() {
    let line = "q3Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0gH2jKmMIIEowIBAAKCAQEAx7Kq2LmN9pR4";
    let end = "-----END RSA PRIVATE KEY-----";
    for (half, left) in [
        (format!("{line}\n{line}\nx7Kq==\n{end}\nbye"), "[redacted:private-key]\nbye"),
        (format!("the rest: {line}\r\n{line}\r\n{end}"), "the rest: [redacted:private-key]"),
        (format!("\"{line}\\n{line}\\r\\nx7Kq==\\n{end}\\n\""), "\"[redacted:private-key]\\n\""),
        (format!("that is it\n{line}\n{end}"), "that is it\n[redacted:private-key]"),
    ] {
        assert_eq!(redact(&half), left);
    }
}

#[test]
fn random_text_is_redacted_without_a_panic() {
    let pieces = [
        "password",
        "=",
        "\\\"",
        "\"",
        "é",
        "密码：",
        "密码是",
        "“",
        "-----END ",
        "-----BEGIN ",
        "PRIVATE KEY-----",
        "://",
        ":",
        "@",
        "\n",
        " ",
        "ghp_",
        "sk-",
        "[redacted:",
        "x7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0gH2jKm",
        "😀",
        "{{",
        "${",
        "Authorization: Bearer ",
        "cookie: a=",
        "key",
        "-p",
        "mysql ",
        "eyJ",
        ".",
        "\0",
    ];
    let mut random = ctx_testkit::Random::seeded(7);
    for _ in 0..2_000 {
        let text: String =
            (0..random.below(24)).map(|_| pieces[random.below(pieces.len())]).collect();
        redact(&text);
    }
}
