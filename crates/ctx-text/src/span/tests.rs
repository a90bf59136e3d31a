use super::*;

/// The tokens of a text as `kind text`, without names in code unless they are quoted or requested.
fn found(text: &str) -> Vec<String> {
    spans(text).iter().map(|t| format!("{:?} {}", t.kind, t.text)).collect()
}

#[test]
fn tokens_are_what_they_look_like() {
    let mut wrong = Vec::new();
    for (text, expected) in [
        ("See src/auth/login.ts:42:10, please.", &["Path src/auth/login.ts:42:10"][..]),
        ("edit ./a/b.rs and ../c and ~/x/y", &["Path ./a/b.rs", "Path ../c", "Path ~/x/y"]),
        ("in `crates/foo` or \"main.rs\"", &["Path crates/foo", "Path main.rs"]),
        (
            "/etc/nginx/nginx.conf and C:\\Users\\me\\a.txt",
            &["Path /etc/nginx/nginx.conf", "Path C:\\Users\\me\\a.txt"],
        ),
        (
            "..\\..\\a.env, .\\build.ps1, \\\\nas\\new.txt; not .\\d+ or a\\nb",
            &["Path ..\\..\\a.env", "Path .\\build.ps1", "Path \\\\nas\\new.txt"],
        ),
        ("请修改src/main.rs文件,还有“docs/设计.md”", &["Path src/main.rs", "Path docs/设计.md"]),
        ("打开 设计.md", &["Path 设计.md"]),
        (
            "app/(auth)/page.tsx, pages/[id].tsx",
            &["Path app/(auth)/page.tsx", "Path pages/[id].tsx"],
        ),
        ("see @src/a.rs and @notes.md", &["Path src/a.rs", "Path notes.md"]),
        (
            "@my/a.rs:3, @./a/b.rs and @/home/me/a.rs",
            &["Path my/a.rs:3", "Path ./a/b.rs", "Path /home/me/a.rs"],
        ),
        ("add @acme/ui and @acme/ui@1.2.3", &["CodeName @acme/ui", "Id @acme/ui@1.2.3"]),
        ("in @acme/ui/src/a.ts:7", &["Path acme/ui/src/a.ts:7"]),
        ("GET /users then", &["Path /users"]),
        ("and/or, client/server, he/she, 24/7, TCP/IP, input/output", &[]),
        ("Node.js e.g. i.e. etc. foo.bar", &[]),
        ("https://a.io/x?y=1&z=2). Then", &["Url https://a.io/x?y=1&z=2"]),
        ("见https://a.com/b。", &["Url https://a.com/b"]),
        ("[doc](https://x.org/a_(b)) end", &["Url https://x.org/a_(b)"]),
        ("see api.example.com or github.com/a/b", &["Url api.example.com", "Url github.com/a/b"]),
        ("commit 3f2a9bc fixes #123 and ABC-77", &["Id 3f2a9bc", "Id #123", "Id ABC-77"]),
        ("550e8400-e29b-41d4-a716-446655440000", &["Id 550e8400-e29b-41d4-a716-446655440000"]),
        (
            "v1.2.3, react@18.2.0, 10.0.0.1:8080, localhost:3000",
            &["Id v1.2.3", "Id react@18.2.0", "Id 10.0.0.1:8080", "Id localhost:3000"],
        ),
        ("Python 3.11 on port 8080, UTF-8", &["Id Python 3.11", "Id port 8080"]),
        ("端口 8080, 端口是9090", &["Id 端口 8080", "Id 端口是9090"]),
        ("mail a.b@example.com", &["Id a.b@example.com"]),
        ("toolu_01A2b3C4d5E6 and us-east-1", &["Id toolu_01A2b3C4d5E6", "Id us-east-1"]),
        ("on feature/login-form", &["Id feature/login-form"]),
        ("error[E0308]: mismatched", &["ErrorCode E0308"]),
        (
            "TS2304 ENOENT ERR_MODULE_NOT_FOUND",
            &["ErrorCode TS2304", "ErrorCode ENOENT", "ErrorCode ERR_MODULE_NOT_FOUND"],
        ),
        (
            "HTTP 404, exit code 1, exited with code 137",
            &["ErrorCode HTTP 404", "ErrorCode exit code 1", "ErrorCode exited with code 137"],
        ),
        ("returns 404 Not Found; got a 500.", &["ErrorCode 404", "ErrorCode 500"]),
        ("接口返回 502", &["ErrorCode 502"]),
        ("java.lang.NullPointerException: x", &["ErrorCode java.lang.NullPointerException"]),
        ("TypeError: x is not", &["ErrorCode TypeError"]),
        (
            "wait 500ms or 30 seconds, 20%, $5",
            &["Number 500ms", "Number 30 seconds", "Number 20%", "Number $5"],
        ),
        ("超时 30 秒,内存 2GB,3万用户", &["Number 30 秒", "Number 2GB", "Number 3万"]),
        ("on 2026-03-15 at noon", &["Number 2026-03-15"]),
        ("we changed 3 files and 12 of 14 tests", &[]),
        ("use `retry_after` and `frobnicate`", &["CodeName retry_after", "CodeName frobnicate"]),
        (
            "call getUserById() in UserService, std::fs::read, --no-verify",
            &[
                "CodeName getUserById",
                "CodeName UserService",
                "CodeName std::fs::read",
                "CodeName --no-verify",
            ],
        ),
        ("run `cargo test -p ctx-core`", &["CodeName cargo test -p ctx-core"]),
        ("run `rm src/a.rs`", &["CodeName rm src/a.rs", "Path src/a.rs"]),
        ("GitHub, TypeScript, iPhone and macOS", &[]),
        ("a plain sentence, with nothing in it - really. Don't!", &[]),
    ] {
        let found = found(text);
        if found != expected {
            wrong.push(format!("{text}\n  {found:?}\n  {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_token_stands_only_where_it_ends() {
    for (text, token, kind, stands) in [
        ("see src/a.rs.", "src/a.rs", SpanKind::Path, true),
        ("see `src/a.rs:10`", "src/a.rs", SpanKind::Path, true),
        ("see ./src/a.rs", "src/a.rs", SpanKind::Path, true),
        ("src/a.rs.bak", "src/a.rs", SpanKind::Path, false),
        ("lib/src/a.rs", "src/a.rs", SpanKind::Path, false),
        ("src/a.rss", "src/a.rs", SpanKind::Path, false),
        ("src/main.rs", "main.rs", SpanKind::Path, true),
        ("domain.rs", "main.rs", SpanKind::Path, false),
        ("文件src/a.rs的", "src/a.rs", SpanKind::Path, true),
        ("3f2a9bc1d", "3f2a9bc", SpanKind::Id, true),
        ("3f2a9bcx", "3f2a9bc", SpanKind::Id, false),
        ("v1.2.3", "v1.2", SpanKind::Id, false),
        ("#1234", "#123", SpanKind::Id, false),
        ("1500ms", "500ms", SpanKind::Number, false),
        ("0.500ms", "500ms", SpanKind::Number, false),
        ("retry_after_ms", "retry_after", SpanKind::CodeName, false),
        ("retry_after()", "retry_after", SpanKind::CodeName, true),
        ("https://a.io/x/y", "https://a.io/x", SpanKind::Url, false),
        ("https://a.io/x.", "https://a.io/x", SpanKind::Url, true),
    ] {
        let start = text.find(token).unwrap();
        assert_eq!(
            stands_alone(text, &(start..start + token.len()), kind),
            stands,
            "{token} in {text}"
        );
    }
}

#[test]
fn spellings_of_one_thing_have_one_normal_form() {
    for (kind, a, b) in [
        (SpanKind::Number, "500ms", "500 milliseconds"),
        (SpanKind::Number, "1,500 tokens", "1500 tokens"),
        (SpanKind::Number, "200k tokens", "200000 tokens"),
        (SpanKind::ErrorCode, "exit code 1", "exited with code 1"),
        (SpanKind::ErrorCode, "HTTP 404", "status code 404"),
        (SpanKind::ErrorCode, "404", "HTTP 404"),
        (SpanKind::Path, "./src/a.rs", "src/a.rs:42"),
        (SpanKind::Path, "src/", "src"),
        (SpanKind::Id, "#42", "PR #42"),
        (SpanKind::Id, "v1.2.3", "1.2.3"),
        (SpanKind::Id, "port 8080", "端口 8080"),
        (SpanKind::CodeName, "login()", "login"),
    ] {
        assert_eq!(normal_form(kind, a), normal_form(kind, b), "{a} {b}");
    }
    for (a, b) in [("5 s", "5 ms"), ("2026-03-15", "2026-03-20"), ("9:15", "9:45")] {
        assert_ne!(normal_form(SpanKind::Number, a), normal_form(SpanKind::Number, b));
    }
}
