//! `ctx setup`, `ctx run`, `ctx serve --background`, `ctx doctor` and the greeting.

use serde_json::Value;

use crate::support::{Ran, Room};

const CODEX: &str = "# mine\nmodel   = 'gpt-5'\n\n[tui]\n  theme = \"dark\"  # best";

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{} {}", ran.stdout, ran.stderr))
}

#[test]
fn a_client_is_set_up_and_restored_byte_for_byte() {
    let room = Room::new();
    let path = room.write(".codex/config.toml", CODEX);
    let read = || std::fs::read_to_string(&path).expect("the file is there");
    let planned = room.ctx(&["setup", "codex", "--dry-run"]);
    assert!(planned.stdout.contains("+openai_base_url = \"http://127.0.0.1:8787/v1\""));
    assert_eq!(read(), CODEX, "a plan changes nothing");
    let unasked = room.ctx(&["setup", "codex"]);
    assert_eq!(unasked.code, Some(1), "{}", unasked.stderr);
    assert!(unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    assert_eq!(json(&room.ctx(&["setup", "codex", "--json"]))["written"], false);
    assert_eq!(read(), CODEX, "it is not written without a yes");
    let set_up = room.ctx(&["setup", "codex", "--mcp", "--yes"]);
    assert_eq!(set_up.code, Some(0), "{}", set_up.stderr);
    assert!(read().contains("# mine\nmodel   = 'gpt-5'\n") && read().contains("[mcp_servers.ctx]"));
    let listed = json(&room.ctx(&["setup", "--json"]));
    let codex = listed["clients"].as_array().expect("clients").iter();
    let codex = codex.clone().find(|client| client["client"] == "codex").expect("codex");
    assert_eq!(codex["setUp"], true, "{listed}");
    assert!(room.ctx(&["setup", "codex", "--yes"]).stdout.contains("set up already"));
    let undone = room.ctx(&["setup", "codex", "--undo", "--yes"]);
    assert_eq!((undone.code, read().as_str()), (Some(0), CODEX), "{}", undone.stderr);
    assert!(room.ctx(&["setup", "codex", "--undo"]).stdout.contains("nothing to undo"));
}

#[test]
fn edits_after_the_setup_are_shown_and_kept() {
    let room = Room::new();
    let path = room.write(".gemini/.env", "GEMINI_API_KEY=k-secret\n");
    assert_eq!(room.ctx(&["setup", "gemini", "--yes"]).code, Some(0));
    let edited = std::fs::read_to_string(&path).expect("it is there") + "MORE=1\n";
    std::fs::write(&path, &edited).expect("it can be written");
    let refused = room.ctx(&["setup", "gemini", "--undo", "--yes"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("edited after the setup") && refused.stderr.contains(".backup")
    );
    assert!(refused.stdout.contains("-GOOGLE_GEMINI_BASE_URL="), "{}", refused.stdout);
    assert!(!refused.stdout.contains("k-secret"), "keys are not shown: {}", refused.stdout);
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), edited);
    let forced = room.ctx(&["setup", "gemini", "--undo", "--force", "--json", "--yes"]);
    assert_eq!(json(&forced)["written"], true);
    let left = std::fs::read_to_string(&path).expect("it is there");
    assert_eq!(left, "GEMINI_API_KEY=k-secret\nMORE=1\n");
}

#[test]
fn the_setups_of_all_clients_are_undone_with_the_folders_that_they_created() {
    let room = Room::new();
    let path = room.write(".codex/config.toml", CODEX);
    for client in ["codex", "claude", "opencode"] {
        assert_eq!(room.ctx(&["setup", client, "--yes"]).code, Some(0));
    }
    room.write(".config/mine", "1");
    let project = room.write("p/readme", "");
    let project = project.parent().expect("a folder");
    let setup = |args: &[&str]| Ran::of(room.command(args).current_dir(project));
    assert_eq!(setup(&["setup", "claude", "--project", "--yes"]).code, Some(0));
    let asked = room.ctx(&["setup", "--undo", "--yes", "--json"]);
    assert_eq!(asked.code, Some(2), "{}", asked.stderr);
    assert!(asked.stderr.contains("set up are: claude, codex, opencode"), "{}", asked.stderr);
    let undone = room.ctx(&["setup", "--undo", "--yes"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), CODEX);
    assert!(!room.path(".claude").exists() && !room.path(".config/opencode").exists());
    assert!(room.path(".config/mine").exists());
    let undone = room.ctx(&["setup", "--undo"]);
    assert!(undone.stdout.contains("nothing to undo"), "{}", undone.stdout);
    assert!(undone.stderr.contains("ctx setup claude --project --undo"), "{}", undone.stderr);
    let moved = project.with_extension("moved");
    std::fs::rename(project, &moved).expect("a folder can be moved");
    let gone = room.ctx(&["setup", "--undo"]);
    assert!(gone.stderr.contains("the folder is gone; the record is"), "{}", gone.stderr);
    std::fs::rename(moved, project).expect("a folder can be moved");
    assert_eq!(setup(&["setup", "--project", "--undo", "--yes"]).code, Some(0));
    assert!(!project.join(".claude").exists());
}

#[test]
fn a_setup_of_a_deleted_file_is_forgotten_and_the_copy_stays() {
    let room = Room::new();
    let path = room.write(".codex/config.toml", CODEX);
    assert_eq!(room.ctx(&["setup", "codex", "--yes"]).code, Some(0));
    std::fs::remove_file(&path).expect("it can be removed");
    let refused = room.ctx(&["setup", "codex", "--undo", "--yes"]);
    assert!(refused.stderr.contains("deleted after the setup"), "{}", refused.stderr);
    let forced = room.ctx(&["setup", "codex", "--undo", "--force", "--yes"]);
    let (_, copy) = forced.stderr.trim().rsplit_once(' ').expect("a path");
    assert_eq!(std::fs::read_to_string(copy).expect("the copy is there"), CODEX);
    assert!(!path.exists());
    let again = room.ctx(&["setup", "codex", "--undo", "--yes"]);
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_setup_says_if_settings_of_the_folder_win() {
    let room = Room::new();
    let folder =
        room.write("w/.claude/settings.json", r#"{"env":{"ANTHROPIC_BASE_URL":"http://gw"}}"#);
    let folder = folder.ancestors().nth(2).expect("a folder");
    let mut setup = room.command(&["setup", "claude", "--yes"]);
    let ran = Ran::of(setup.current_dir(folder));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("other settings win"), "{}", ran.stderr);
    assert!(ran.stderr.contains("names http://gw; `ctx setup claude --project`"), "{}", ran.stderr);
    let mut setup = room.command(&["setup", "claude", "--project", "--yes"]);
    let ran = Ran::of(setup.current_dir(folder));
    assert!(!ran.stderr.contains("win"), "{}", ran.stderr);
}

#[test]
fn bad_setups_say_what_to_do() {
    let room = Room::new();
    room.write(".claude/settings.json", "{ \"env\": ");
    room.write(".qwen/.env", "OPENAI_BASE_URL=http://gateway/v1\n");
    for (args, words) in [
        (&["setup", "cursor"][..], "unknown client 'cursor'"),
        (&["setup", "claude", "--yes"], "not valid JSON"),
        (&["setup", "qwen", "--yes"], "--upstream openai=http://gateway/v1"),
        (&["setup", "openclaw", "--yes"], "no provider with a baseUrl"),
        (&["setup", "pi", "--project", "--yes"], "leave out --project"),
        (&["setup", "codex", "--url", "here"], "'here' is not a URL"),
        (&["setup", "codex", "--url", "http://"], "'http://' is not a URL"),
        (&["run", "--", "no-such-client-of-ctx"], "cannot start the client"),
        (&["run", "--", "openclaw"], "no provider with a baseUrl"),
    ] {
        let ran = room.ctx(args);
        assert!(ran.code != Some(0) && ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(room.ctx(&["run", "--", "no-such-client-of-ctx"]).code, Some(127));
}

#[test]
fn the_doctor_names_a_client_whose_proxy_is_gone() {
    let room = Room::new();
    let healthy = room.ctx(&["doctor", "--json"]);
    let findings = json(&healthy)["findings"].clone();
    let passes = |finding: &Value| {
        finding["check"] == "proxy"
            && finding["text"].as_str().expect("text").contains("pass to a test")
    };
    assert!(findings.as_array().expect("findings").iter().any(passes), "{findings}");
    assert_eq!(healthy.code, Some(0), "{findings}");
    room.write("engines/old/old.toml", "manifest_version = 99\n");
    let warned = room.ctx(&["doctor"]);
    assert_eq!(warned.code, Some(0), "{}", warned.stdout);
    assert!(warned.stdout.contains("old: unsupported manifest version 99"), "{}", warned.stdout);
    let bin = room.path("bin");
    #[cfg(unix)]
    {
        room.program("codex", "echo codex-cli 9");
        // The port is taken by nothing: it was free a moment ago, and low.
        room.ctx(&["setup", "codex", "--yes", "--url", "http://127.0.0.1:1"]);
        let ill = Ran::of(room.command(&["doctor"]).env("PATH", &bin));
        assert_eq!(ill.code, Some(1), "{} {}", ill.stdout, ill.stderr);
        assert!(ill.stdout.contains("Codex 9 ") && ill.stdout.contains("nothing listens there"));
        assert!(ill.stdout.contains("ctx setup codex --undo"), "{}", ill.stdout);
        let gateway = "model_provider = 'g'\n[model_providers.g]\nbase_url = 'http://gw/v1'\n";
        room.program("codex", "echo no node >&2; exit 3");
        let ill = Ran::of(room.command(&["doctor"]).env("PATH", &bin));
        assert!(ill.stdout.contains("does not start: no node"), "{}", ill.stdout);
        room.write(".codex/work.config.toml", gateway);
        let profile = Ran::of(room.command(&["doctor"]).env("PATH", &bin));
        assert!(profile.stdout.contains("Codex with --profile work"), "{}", profile.stdout);
        assert!(profile.stdout.contains("ctx run -- codex --profile work"), "{}", profile.stdout);
    }
    let greeting = Ran::of(room.command(&[]).env("PATH", &bin));
    assert_eq!(greeting.code, Some(0), "{}", greeting.stderr);
    #[cfg(unix)]
    assert!(greeting.stdout.contains("ctx run -- codex"), "{}", greeting.stdout);
}

#[cfg(unix)]
mod servers {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::process::Stdio;

    use ctx_testkit::provider::{FakeProvider, Moment, Step};
    use serde_json::Value;

    use super::json;
    use crate::support::{Ran, Room};

    const BODY: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

    fn provider(script: impl IntoIterator<Item = Step>) -> FakeProvider {
        let builder = FakeProvider::builder().script(script).respond(|_| Step::text("hello"));
        builder.start().expect("loopback can be listened on")
    }

    /// Sends a request, and waits for the beginning of its answer.
    fn begin(url: &str) -> TcpStream {
        let host = url.trim_start_matches("http://").trim_end_matches("/v1");
        let mut stream = TcpStream::connect(host).expect("it listens");
        let length = BODY.len();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer k\r\n\
             connection: close\r\ncontent-length: {length}\r\n\r\n{BODY}"
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        assert_eq!(stream.peek(&mut [0]).expect("an answer"), 1);
        stream
    }

    fn whole(mut stream: TcpStream) -> String {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn a_run_sends_the_requests_of_its_child_through_ctx() {
        let (room, provider) = (Room::new(), provider([]));
        let script = "echo $OPENAI_BASE_URL; read line; exit 7";
        let upstream = format!("openai={}", provider.v1());
        let mut run = room.command(&["run", "-u", &upstream, "--", "sh", "-c", script]);
        run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = run.spawn().expect("the binary runs");
        let mut url = String::new();
        BufReader::new(run.stdout.take().expect("a pipe")).read_line(&mut url).expect("a URL");
        assert!(whole(begin(url.trim())).contains("hello"));
        let asked = provider.requests();
        assert!(asked.iter().any(|request| request.path == "/v1/chat/completions"));
        run.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
        let ended = run.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(7), "the client's own exit code");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!said.contains("no request passed"), "{said}");
        let silent = room.ctx(&["run", "-u", &upstream, "--", "sh", "-c", "true"]);
        assert!(silent.stderr.contains("no request passed"), "{}", silent.stderr);
        let host = url.trim().trim_start_matches("http://").trim_end_matches("/v1");
        assert!(TcpStream::connect(host).is_err(), "the proxy ends with the client");
    }

    #[test]
    fn the_title_of_the_terminal_says_what_passes() {
        let (room, provider) = (Room::new(), provider([]));
        let (mut terminal, other_end) = pty_process::blocking::open().expect("a terminal");
        let script = "echo url $OPENAI_BASE_URL; read line";
        let plain = room.command(&["run", "-u", &provider.url(), "--", "sh", "-c", script]);
        let mut command = pty_process::blocking::Command::new(plain.get_program())
            .args(plain.get_args())
            .env("TERM", "xterm");
        for (name, value) in plain.get_envs() {
            command = match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut run = command.spawn(other_end).expect("the binary runs");
        let mut shown = String::new();
        let mut wait = |words: &str, terminal: &mut pty_process::blocking::Pty| {
            let mut buffer = [0; 4096];
            while !shown.contains(words) {
                let read = terminal.read(&mut buffer).expect("more output");
                shown.push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
            shown.clone()
        };
        let url = wait("/v1\r\n", &mut terminal);
        let url = url.split_whitespace().nth(1).expect("a URL");
        assert!(whole(begin(url)).contains("hello"));
        let titled = wait("\x07", &mut terminal);
        assert!(titled.contains("\x1b[22;2t\x1b]2;ctx: ") && titled.contains(" of "), "{titled:?}");
        terminal.write_all(b"\n").expect("it reads");
        wait("\x1b[23;2t", &mut terminal);
        assert!(run.wait().expect("it ends").success());
    }

    #[test]
    fn the_doctor_asks_the_cheapest_model_of_each_provider_whose_key_is_set() {
        let room = Room::new();
        let builder = FakeProvider::builder().models(["big", "big-mini", "big-nano"]);
        let provider = builder.respond(|_| Step::text("pong")).start().expect("it listens");
        let args = ["serve", "--background", "--listen", "127.0.0.1:0", "-u", &provider.url()];
        assert_eq!(room.ctx(&args).code, Some(0));
        let mut doctor = room.command(&["doctor", "--live", "--json"]);
        doctor.env("OPENAI_API_KEY", "key-1").env("ANTHROPIC_API_KEY", "key-2");
        let ran = Ran::of(doctor.env_remove("GEMINI_API_KEY"));
        assert_eq!(ran.stdout.matches("big-nano").count(), 2, "{}", ran.stdout);
        assert!(!ran.stdout.contains("key-1") && !ran.stdout.contains("key-2"), "{}", ran.stdout);
        let asked = provider.requests().into_iter().filter(|asked| asked.method == "POST");
        let asked: Vec<_> = asked.map(|asked| asked.path).collect();
        assert_eq!(asked, ["/v1/responses", "/v1/messages"]);
        assert_eq!(room.ctx(&["serve", "--stop"]).code, Some(0));
    }

    #[test]
    fn a_server_in_the_background_is_found_replaced_and_ended() {
        let room = Room::new();
        let provider = provider([Step::text("one two three").held_at(Moment::AfterEvents(3))]);
        let upstream = provider.url();
        let args = ["serve", "--background", "--json", "--listen", "127.0.0.1:0", "-u", &upstream];
        let first = json(&room.ctx(&args));
        let url = first["url"].as_str().expect("a URL").to_owned();
        assert_eq!(json(&room.ctx(&args)), first, "one for a home");
        assert_eq!(json(&room.ctx(&["setup", "--json"]))["proxy"], url.as_str());
        let status = json(&room.ctx(&["serve", "--status", "--json"]))["server"].clone();
        assert_eq!((&status["url"], &status["pid"]), (&first["url"], &first["pid"]), "{status}");
        assert!(room.ctx(&["serve", "--status"]).stdout.contains(&format!("openai -> {upstream}")));
        let taken = room.ctx(&["serve", "--listen", url.trim_start_matches("http://")]);
        assert!(
            taken.code == Some(1) && taken.stderr.contains("--stop` ends it"),
            "{}",
            taken.stderr
        );
        let other = room.ctx(&["serve", "--background", "-u", "openai=http://127.0.0.1:9/v1"]);
        assert!(other.code != Some(0) && other.stderr.contains("--replace"), "{}", other.stderr);
        let stream = begin(&url);
        let listen = url.trim_start_matches("http://").to_owned();
        let mut replace = room.command(&[
            "serve",
            "--background",
            "--replace",
            "--json",
            "--listen",
            &listen,
            "-u",
            &upstream,
        ]);
        let replace = replace.stdout(Stdio::piped()).stderr(Stdio::piped());
        let replace = replace.spawn().expect("the binary runs");
        provider.release();
        assert!(whole(stream).contains("[DONE]"), "a running answer is finished");
        let replaced = replace.wait_with_output().expect("it ends");
        let said: Value = serde_json::from_slice(&replaced.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&replaced.stderr)));
        assert_eq!(said["url"], url.as_str());
        assert_ne!(said["pid"], first["pid"]);
        assert!(whole(begin(&url)).contains("hello"));
        let stopped = room.ctx(&["serve", "--stop"]);
        assert!(stopped.stdout.contains(&url), "{} {}", stopped.stdout, stopped.stderr);
        assert!(TcpStream::connect(&listen).is_err());
        assert!(room.ctx(&["serve", "--stop"]).stderr.contains("no `ctx serve`"));
        assert_eq!(room.ctx(&["serve", "--status"]).code, Some(1));
    }

    #[test]
    fn a_setup_says_if_a_key_would_go_to_another_server() {
        let room = Room::new();
        room.write(".codex/config.toml", "openai_base_url = \"http://127.0.0.1:9/v1\"\n");
        let serve = ["serve", "--background", "--json", "--listen", "127.0.0.1:0"];
        json(&room.ctx(&serve));
        let refused = room.ctx(&["setup", "codex", "--yes"]);
        assert!(refused.code != Some(0) && refused.stderr.contains("--replace"));
        let words = "--upstream openai=http://127.0.0.1:9/v1` sends them there";
        let replaced = room.ctx(&["setup", "codex", "--replace", "--yes"]);
        assert_eq!(replaced.code, Some(0), "{}", replaced.stderr);
        assert!(replaced.stderr.contains(words), "{}", replaced.stderr);
        assert_eq!(room.ctx(&["setup", "codex", "--undo", "--yes"]).code, Some(0));
        let routed = [&serve[..], &["--replace", "-u", "openai=http://127.0.0.1:9/v1"]].concat();
        json(&room.ctx(&routed));
        let kept = room.ctx(&["setup", "codex", "--yes"]);
        assert_eq!((kept.code, kept.stderr.contains(words)), (Some(0), false), "{}", kept.stderr);
        let moved = ["serve", "--background", "--replace", "-u", "openai=http://127.0.0.1:8/v1"];
        assert_eq!(room.ctx(&moved).code, Some(0));
        let codex = room.program("codex", "echo codex-cli 1.2");
        let path = codex.parent().expect("a folder");
        let doctor = Ran::of(room.command(&["doctor"]).env("PATH", path));
        let lost = "does not send them to http://127.0.0.1:9/v1, where they went before";
        assert!(doctor.stdout.contains(lost), "{}", doctor.stdout);
        assert_eq!(room.ctx(&["serve", "--stop"]).code, Some(0));
    }

    #[test]
    fn a_server_ends_by_a_request_with_its_key_alone() {
        let room = Room::new();
        let args = ["serve", "--background", "--json", "--listen", "127.0.0.1:0"];
        let url = json(&room.ctx(&args))["url"].as_str().expect("a URL").to_owned();
        let host = url.trim_start_matches("http://");
        let path = room.path("proxy/server.json");
        let server = std::fs::read(path).expect("the address is there");
        let server: Value = serde_json::from_slice(&server).expect("JSON");
        for (key, status) in
            [("", 403), ("0", 403), (server["stopKey"].as_str().unwrap_or("?"), 202)]
        {
            let mut stream = TcpStream::connect(host).expect("it listens");
            let head = format!(
                "POST /api/stop HTTP/1.1\r\nhost: {host}\r\nx-ctx-stop: {key}\r\n\
                 content-length: 0\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).expect("it reads");
            assert!(whole(stream).starts_with(&format!("HTTP/1.1 {status}")), "{key}");
        }
        assert_eq!(room.ctx(&["serve", "--stop"]).code, Some(0));
        assert!(TcpStream::connect(host).is_err());
    }

    #[test]
    fn pi_and_openclaw_get_a_file_for_one_run() {
        let room = Room::new();
        let config = r#"{"models":{"providers":{"a":{"baseUrl":"http://127.0.0.1:9/v1"}}}}"#;
        let openclaw = room.write(".openclaw/openclaw.json", config);
        for (name, script, expected) in [
            ("pi", "echo $2; cat $2", "\"openai\":\"http://127.0.0.1:"),
            ("openclaw", "echo $OPENCLAW_CONFIG_PATH; cat $OPENCLAW_CONFIG_PATH", "\"$include\""),
        ] {
            let program = room.program(name, script);
            let ran = room.ctx(&["run", "--", program.to_str().expect("text")]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let (file, text) = ran.stdout.split_once('\n').expect("a path");
            assert!(text.contains(expected) && !text.contains(":9/"), "{text}");
            assert!(!std::path::Path::new(file).exists(), "{file} is removed");
        }
        assert_eq!(std::fs::read_to_string(openclaw).expect("it is there"), config);
    }

    #[test]
    fn a_server_stays_if_its_successor_cannot_start() {
        let (room, provider) = (Room::new(), provider([]));
        let upstream = provider.url();
        let args = ["serve", "--background", "--json", "--listen", "127.0.0.1:0", "-u", &upstream];
        let first = json(&room.ctx(&args));
        let ran = room.ctx(&["serve", "--background", "--replace", "--upstream", "ftp://x"]);
        assert!(ran.code != Some(0) && ran.stderr.contains("http://"), "{}", ran.stderr);
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let busy = taken.local_addr().expect("it listens").to_string();
        let ran = room.ctx(&["serve", "--background", "--replace", "--listen", &busy]);
        assert!(ran.code != Some(0) && ran.stderr.contains("cannot listen"), "{}", ran.stderr);
        assert!(whole(begin(first["url"].as_str().expect("a URL"))).contains("hello"));
        // A key does not go elsewhere because the upstream is not named again.
        let replace = ["serve", "--background", "--replace", "--json", "--listen", "127.0.0.1:0"];
        let replaced = room.ctx(&replace);
        assert!(replaced.stderr.contains(&format!("openai={upstream}")), "{}", replaced.stderr);
        assert!(whole(begin(json(&replaced)["url"].as_str().expect("a URL"))).contains("hello"));
        let windowed = room.ctx(&["serve", "--background", "--window", "50k"]);
        assert!(windowed.stderr.contains("runs already"), "{}", windowed.stderr);
        // Clients have the port.
        let flags = ["serve", "--background", "--replace", "--json"];
        let windowed = room.ctx(&[&flags[..], &["--window", "50k"]].concat());
        assert_eq!(json(&windowed)["url"], json(&replaced)["url"]);
        let again = room.ctx(&[&flags[..], &["-u", "gemini=http://127.0.0.1:9"]].concat());
        for flag in ["--window 50k".to_owned(), format!("--upstream openai={upstream}")] {
            assert!(again.stderr.contains(&flag), "{}", again.stderr);
        }
        assert_eq!(json(&again)["url"], json(&replaced)["url"]);
        assert_eq!(room.ctx(&["serve", "--stop"]).code, Some(0));
    }

    #[test]
    fn a_server_that_cannot_start_says_why() {
        let room = Room::new();
        let ran = room.ctx(&["serve", "--background", "--window", "12"]);
        assert_eq!(ran.code, Some(1));
        assert!(
            ran.stderr.contains("too small") && ran.stderr.contains("serve.log"),
            "{}",
            ran.stderr
        );
    }
}
