//! Reports of `ctx chat --prompt` about models, commands and tools.

use ctx_testkit::provider::Step;
use serde_json::{Value, json};

use super::Talk;
use crate::support::Ran;

const GOOD: [&str; 2] = ["--model", "openai/good"];

#[test]
fn the_reported_window_of_an_unknown_model_is_the_used_one() {
    let talk = Talk::new();
    talk.room.write(
        "ctx.json5",
        json!({"models": {"providers": {"mine": {"baseUrl": talk.provider.v1(), "models": []}}}})
            .to_string(),
    );
    let run = |model: &str, args: &[&str]| {
        let args = [&["chat", "--model", model], args].concat();
        let mut command = talk.room.command(&args);
        command.current_dir(talk.room.path("work")).env("OPENAI_BASE_URL", talk.provider.v1());
        Ran::of(command.env_remove("OPENAI_API_KEY"))
    };
    for model in ["openai/nobody-knows", "mine/own"] {
        talk.provider.extend([Step::text("hello")]);
        let ran = run(model, &["--json", "-p", "turn 3: go on"]);
        assert!(ran.stderr.contains("16,000 tokens are assumed"), "{model}: {}", ran.stderr);
        let said: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(said["window"], 16_000, "{model}: {said}");
        let ran = run(model, &["-p", "/status"]);
        assert!(ran.stdout.contains("window 16,000"), "{model}: {}", ran.stdout);
    }
}

#[test]
fn invalid_commands_in_a_script_are_errors_with_a_reason() {
    let talk = Talk::new();
    for (text, told) in [
        ("/foo", "unknown command /foo"),
        ("/Status", "the commands are /compact"),
        ("/undo now", "takes no argument"),
        ("/help", "works only at a terminal"),
        ("/quit", "works only at a terminal"),
    ] {
        let ran = talk.run(&[&GOOD[..], &["-p", text]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{text}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{text}: {}", ran.stderr);
    }
    assert_eq!(talk.provider.count(), 0);
}

#[test]
fn without_tools_the_prompt_does_not_mention_any() {
    let talk = Talk::new();
    talk.provider.extend([Step::text("one"), Step::text("two")]);
    for tools in ["none", "read"] {
        talk.run(&[&GOOD[..], &["--tools", tools, "-p", "hello"]].concat());
    }
    let asked = talk.provider.requests();
    let system = |at: usize| asked[at].prompt.said[0].1.contains("Your tools");
    assert_eq!((system(0), system(1)), (false, true));
    let ran = talk.run(&[&GOOD[..], &["--tools", "none,bash", "-p", "x"]].concat());
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

#[test]
fn remember_without_memory_says_how_to_enable_it() {
    let talk = Talk::new();
    let ran = talk.run(&[&GOOD[..], &["-p", "/remember my cat is called Ada"]].concat());
    let key = "agents.defaults.memoryContext.enabled";
    assert!(
        ran.stdout.starts_with("Remembered. But") && ran.stdout.contains(key),
        "{}",
        ran.stdout
    );
    let ran = talk.run(&["--demo", "-p", "/remember my cat is called Ada"]);
    assert_eq!(ran.stdout, "Remembered.\n");
    let ran = talk.run(&["--demo", "-p", "what did I say about my cat?"]);
    assert!(ran.stdout.contains("my cat is called Ada"), "{}", ran.stdout);
}

#[test]
fn a_long_output_keeps_both_ends_and_can_be_read_in_full() {
    let talk = Talk::new();
    let command = "seq 1 100000; echo ALLGOOD";
    talk.provider.extend([Step::call("bash", json!({ "command": command })), Step::text("one")]);
    talk.run(&[&GOOD[..], &["--tools", "bash", "-p", "first"]].concat());
    let result = talk.said("toolResult").remove(0);
    assert!(result.starts_with("1\n2\n") && result.contains("ALLGOOD"), "{result}");
    assert!(result.contains("588903 bytes were printed; 262144 of them are kept"), "{result}");
    let (_, path) = result.split_once("[full output preserved at ").expect("it is kept");
    let path = path.split(']').next().expect("a path");
    let read = json!({"path": path, "offset": 3, "limit": 2});
    talk.provider.extend([Step::call("read", read), Step::text("two")]);
    talk.run(&[&GOOD[..], &["-p", "second"]].concat());
    assert!(talk.said("toolResult")[1].starts_with("3\n4\n"), "{:?}", talk.said("toolResult")[1]);
}

#[test]
fn the_answer_is_printed_if_closing_the_session_fails() {
    let talk = Talk::new();
    let store = talk.room.path("agents/main/sessions/sessions.json");
    let command = format!("rm '{0}' && mkdir '{0}'", store.display());
    talk.provider
        .extend([Step::call("bash", json!({ "command": command })), Step::text("paid for")]);
    let ran = talk.run(&[&GOOD[..], &["--tools", "bash", "-p", "first"]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "paid for\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning:"), "{}", ran.stderr);
}

#[test]
fn a_damaged_transcript_is_reported_with_hints() {
    let talk = Talk::new();
    talk.provider.extend([Step::text("one"), Step::text("two")]);
    talk.run(&[&GOOD[..], &["-p", "first"]].concat());
    let transcript = talk.transcript();
    std::fs::write(&transcript, "").expect("written");
    let ran = talk.run(&[&GOOD[..], &["-p", "second"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let repair = format!("`ctx check {} --repair`", transcript.display());
    assert!(ran.stderr.contains("/new begins") && ran.stderr.contains(&repair), "{}", ran.stderr);
    let ran = talk.run(&[&GOOD[..], &["-p", "/new second"]].concat());
    assert_eq!(ran.stdout, "two\n", "{}", ran.stderr);
}

#[test]
fn a_session_key_is_accepted_in_place_of_a_path() {
    let talk = Talk::new();
    talk.provider.extend([Step::text("one")]);
    talk.run(&[&GOOD[..], &["-p", "first"]].concat());
    let listed = talk.room.json(&["sessions"]);
    let path = talk.transcript().display().to_string();
    assert_eq!(listed[0]["transcript"], path);
    let ran = talk.room.ctx(&["sessions", "--paths"]);
    assert!(ran.stdout.contains(&path), "{}", ran.stdout);
    for command in ["status", "check", "compactions"] {
        let ran = talk.room.ctx(&[command, "agent:main:main"]);
        assert_eq!(ran.code, Some(0), "{command}: {}", ran.stderr);
    }
    let ran = talk.room.ctx(&["status", "agent:main:explicit:other"]);
    assert!(ran.stderr.contains("session 'agent:main:explicit:other' not found"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`ctx sessions` lists"), "{}", ran.stderr);
}
