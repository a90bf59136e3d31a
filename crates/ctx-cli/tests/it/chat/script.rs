//! `ctx chat --prompt`: the output for scripts.

use std::io::Write;
use std::process::Stdio;

use ctx_testkit::provider::{FailureKind, FakeProvider, Step};
use serde_json::{Value, json};

use super::Talk;
use crate::support::{Ran, Room};

const GOOD: [&str; 2] = ["--model", "openai/good"];

/// Runs `ctx chat` in a room without any model.
fn alone(room: &Room, args: &[&str]) -> Ran {
    let args = [&["chat"], args].concat();
    let mut command = room.command(&args);
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"] {
        command.env_remove(name);
    }
    Ran::of(command.current_dir(room.path("")))
}

#[test]
fn without_a_model_one_line_says_how_to_configure_one() {
    let room = Room::new();
    let ran = alone(&room, &["-p", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.stderr);
    assert!(lines[0] == "error: no model available", "{}", lines[0]);
    for word in ["ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "--model", "ctx chat --demo"] {
        assert!(lines[1].contains(word), "{}", lines[1]);
    }
    let ran = alone(&room, &["-p", "hello", "--model", "anthropic/claude-sonnet-5"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("ANTHROPIC_API_KEY") && ran.stderr.contains("--demo"),
        "{}",
        ran.stderr
    );
}

#[test]
fn invalid_arguments_are_refused_before_anything_is_stored() {
    let room = Room::new();
    for args in [
        &["--demo", "-p", " "][..],
        &["--demo", "-p", "x", "--window", "many"],
        &["--demo", "-p", "x", "--engine", "no-such-engine"],
        &["--demo", "-p", "x", "--session", "agent:../x:main"],
        &["--demo", "--json"],
        &["--demo", "-p", "x", "--tools", "teleport"],
        &["-p", "x", "--model", "nobody/knows-it"],
    ] {
        let ran = alone(&room, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ran.stderr);
    }
    assert!(!room.path("agents").exists());
}

#[test]
fn stdout_has_only_the_answer_and_json_has_more() {
    let room = Room::new();
    let ran = alone(&room, &["--demo", "-p", "my cat is called Ada"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("Noted: my cat is called Ada\n", ""));
    let ran = alone(&room, &["--demo", "--json", "-p", "what did I say about my cat?"]);
    let said: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(said["answer"], "I can see this: my cat is called Ada");
    assert_eq!(
        (&said["session"], &said["model"]),
        (&"agent:demo:main".into(), &"demo/rules".into())
    );
    assert_eq!((&said["requests"], &said["window"]), (&1.into(), &16_000.into()));
    assert!(said["tokens"].as_u64() > Some(20), "{said}");
    let listed = room.json(&["sessions", "--agent", "demo"]);
    assert_eq!(listed[0]["sessionKey"], "agent:demo:main", "its usage counters are stored");
    assert!(listed[0]["totalTokens"].as_u64() > Some(0), "{listed}");
}

#[test]
fn an_invalid_configuration_is_reported_even_if_it_is_not_used() {
    let room = Room::new();
    room.write("ctx.json5", "{ agents: nonsense");
    let ran = alone(&room, &["--demo", "-p", "hello"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with(
            "warning: invalid configuration ignored, as the demonstration has its own"
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_demonstration_uses_the_given_configuration_and_profile() {
    let room = Room::new();
    room.write(
        "mine.json5",
        "{ agents: { defaults: { windowGuard: { hardMinTokens: 9000, warnBelowTokens: 9000 } } } }",
    );
    let config = room.path("mine.json5");
    let config = config.to_str().expect("UTF-8");
    let ran = alone(&room, &["--demo", "--config", config, "-w", "8k", "-p", "hello"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("too small"), "{}", ran.stderr);
    let ran = alone(&room, &["--demo", "-w", "8k", "-p", "hello"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = alone(&room, &["--demo", "--profile", "pi", "-p", "/status"]);
    assert!(ran.stdout.contains("profile pi"), "{}", ran.stdout);
    room.write("mine.json5", "{ nonsense: 1 }");
    let ran = alone(&room, &["--demo", "--config", config, "-p", "hello"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("nonsense"), "{}", ran.stderr);
}

#[test]
fn a_custom_server_requires_a_model_name() {
    let room = Room::new();
    let mut command = room.command(&["chat", "-p", "hello"]);
    command.env("OPENAI_API_KEY", "x").env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    command.env_remove("ANTHROPIC_API_KEY").current_dir(room.path(""));
    let ran = Ran::of(&mut command);
    assert!(ran.stderr.contains("--model openai/NAME"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("export"), "{}", ran.stderr);
}

#[test]
fn a_message_may_come_from_standard_input() {
    let room = Room::new();
    let mut command = room.command(&["chat", "--demo", "-p", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(room.path(""));
    let mut child = command.spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all("two\nlines\n".as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Noted: two\\nlines\n");
}

#[test]
fn a_script_that_names_no_tool_changes_nothing() {
    let room = Room::new();
    let ran = alone(&room, &["--demo", "-p", "write a.txt: words"]);
    assert!(ran.stdout.contains("I was not given it"), "{}", ran.stdout);
    assert!(!room.path("a.txt").exists());
    let ran = alone(&room, &["--demo", "-p", "write a.txt: words", "--tools", "write"]);
    assert!(ran.stdout.contains("wrote 1 line to a.txt"), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(std::fs::read_to_string(room.path("a.txt")).expect("it is there"), "words\n");
    let ran = alone(&room, &["--demo", "-p", "write ../a.txt: words", "--tools", "write"]);
    assert!(ran.stdout.contains("outside the working folder"), "{}", ran.stdout);
    let ran = alone(&room, &["--demo", "-p", "run cat a.txt", "--tools", "bash"]);
    assert!(ran.stdout.contains("words"), "{}", ran.stdout);
}

#[test]
fn the_demonstration_compacts_flushes_and_recalls() {
    let room = Room::new();
    alone(&room, &["--demo", "-p", "my cat is called Ada"]);
    let mut told = String::new();
    for n in 0..20 {
        let text = format!("a long text about tea {n}");
        let ran = alone(&room, &["--demo", "--verbose", "-p", &text]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        told.push_str(&ran.stderr);
    }
    let ran = alone(&room, &["--demo", "-p", "/compact"]);
    assert!(
        ran.stdout.starts_with("**Compact Complete!**\n\n- Messages compacted: "),
        "{}",
        ran.stdout
    );
    let files = std::fs::read_dir(room.path("demo-workspace/memory")).expect("a flush wrote there");
    let notes: String = files
        .map(|file| std::fs::read_to_string(file.expect("one").path()).expect("text"))
        .collect();
    assert!(notes.contains("- my cat is called Ada"), "{notes}");
    let ran = alone(&room, &["--demo", "-p", "what did I say about my cat?"]);
    assert!(ran.stdout.contains("my cat is called Ada"), "{} {told}", ran.stdout);
}

#[test]
fn a_session_can_be_named() {
    let room = Room::new();
    for name in ["work", "agent:demo:explicit:other"] {
        let ran = alone(&room, &["--demo", "-p", "hello", "--session", name]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let listed = room.json(&["sessions", "--agent", "demo"]);
    let keys: Vec<_> =
        listed.as_array().expect("a list").iter().map(|s| &s["sessionKey"]).collect();
    assert_eq!(keys.len(), 2);
    assert!(keys.contains(&&"agent:demo:explicit:work".into()), "{keys:?}");
}

#[test]
fn status_uses_the_last_window_of_a_session() {
    let room = Room::new();
    for window in [6_000, 12_000] {
        let size = window.to_string();
        let ran = alone(&room, &["--demo", "--window", &size, "-p", "hello"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(room.json(&["status", "agent:demo:main"])["window"], window);
    }
}

#[test]
fn a_fallback_chain_can_be_configured() {
    let talk = Talk::new();
    let config = r#"{ agents: { defaults: { model: { primary: "openai/broken", fallbacks: ["openai/good"] } } } }"#;
    talk.room.write("ctx.json5", config);
    let ran = talk.run(&["-p", "turn 3: go on"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("answer 3: "), "{}", ran.stdout);
    assert!(ran.stderr.contains("openai/good answers instead of openai/broken"), "{}", ran.stderr);
}

#[test]
fn the_anthropic_api_is_supported() {
    let provider = FakeProvider::builder().key("sk-1").script([Step::text("hello")]).start();
    let provider = provider.expect("it starts");
    let talk = Talk::new();
    let args = ["--model", "anthropic/claude-sonnet-5", "-p", "say hello"];
    let mut command = talk.command(&args);
    command.env("ANTHROPIC_BASE_URL", provider.url()).env("ANTHROPIC_API_KEY", "sk-1");
    let ran = Ran::of(&mut command);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{}", ran.stderr);
    assert_eq!(provider.requests()[0].path, "/v1/messages");
}

#[test]
fn a_provider_that_fails_is_an_error_and_the_message_is_kept() {
    let talk = Talk::new();
    talk.provider.extend([Step::error(FailureKind::Unauthorized)]);
    let ran = talk.run(&[&GOOD[..], &["-p", "turn 3: go on"]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(
        ran.stderr.starts_with("error: ") || ran.stderr.contains("\nerror: "),
        "{}",
        ran.stderr
    );
    assert_eq!(talk.said("user"), ["turn 3: go on"]);
    let ran = talk.run(&[&GOOD[..], &["-p", "turn 6: go on"]].concat());
    assert!(ran.stdout.starts_with("answer 6: "), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn the_answer_is_printed_if_the_session_cannot_be_closed() {
    let talk = Talk::new();
    let file = talk.room.path("agents/main/sessions/sessions.json");
    let break_it = format!("rm '{0}' && mkdir '{0}'", file.display());
    talk.provider.extend([Step::call("bash", json!({"command": break_it})), Step::text("done")]);
    let ran = talk.run(&[&GOOD[..], &["-p", "break it", "--tools", "bash"]].concat());
    assert!(file.is_dir(), "{}", ran.stderr);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: the session was not closed"), "{}", ran.stderr);
}

#[test]
fn a_failed_message_of_a_pipe_sets_the_exit_code_and_later_ones_are_read() {
    let talk = Talk::new();
    let failed = Step::error(FailureKind::Unauthorized);
    talk.provider.extend([Step::text("one"), failed, Step::text("three")]);
    let mut command = talk.command(&GOOD);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(b"first\nsecond\nthird\n").expect("written");
    let output = child.wait_with_output().expect("it ends");
    let (said, told) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("one\n") && said.contains("three\n"), "{said} {told}");
    assert!(told.contains("error: "), "{told}");
    assert_eq!(output.status.code(), Some(1), "{told}");
}

/// Returns `ctx` without an ignored Ctrl-C, even if the tests run with it ignored.
#[cfg(target_os = "linux")]
fn interruptible(command: &std::process::Command) -> std::process::Command {
    let mut whole = std::process::Command::new("env");
    whole.arg("--default-signal=INT").arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        whole.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => whole.env(name, value),
            None => whole.env_remove(name),
        };
    }
    whole
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_ends_a_script_and_its_messages_are_stored() {
    use std::os::unix::process::ExitStatusExt;

    use rustix::process::{Pid, Signal, kill_process};

    for args in [&["-p", "turn 3: go on"][..], &[]] {
        let talk = Talk::new();
        talk.provider.extend([Step::hang()]);
        let mut command = interruptible(&talk.command(&[&GOOD[..], args].concat()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(b"turn 3: go on\n").expect("written");
        assert!(talk.provider.wait_arrived(1));
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(id, Signal::INT).expect("it gets it");
        let output = child.wait_with_output().expect("it ends");
        drop(input);
        assert_eq!(output.status.signal(), Some(2), "{args:?}: {output:?}");
        assert_eq!(talk.said("user"), ["turn 3: go on"]);
        let ran = talk.run(&[&GOOD[..], &["-p", "turn 6: go on"]].concat());
        assert!(ran.stdout.starts_with("answer 6: "), "{} {}", ran.stdout, ran.stderr);
    }
}
