//! Lines and keys typed while a tool runs, or at a question.

use std::path::Path;
use std::time::Duration;

use ctx_testkit::provider::Step;
use serde_json::json;

use super::Talk;
use super::terminal::{GOOD, Terminal};

/// A command that reports that it runs, and waits for a file.
const UNTIL_GO: &str = "touch runs; until [ -e go ]; do sleep 0.02; done; echo went";

/// Waits for a file to exist.
fn wait_for(path: &Path) {
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a conversation in which a tool runs until the file `go` is written.
fn with_tool(talk: &Talk) -> Terminal {
    talk.provider.extend([Step::call("bash", json!({ "command": UNTIL_GO }))]);
    let mut terminal = Terminal::new(talk, &GOOD);
    terminal.say("first");
    terminal.wait("allow it?");
    terminal.type_in("y\r");
    wait_for(&talk.room.path("work/runs"));
    terminal
}

#[test]
fn lines_typed_ahead_are_sent_one_after_the_other() {
    let talk = Talk::new();
    let mut terminal = with_tool(&talk);
    terminal.type_in("second line\rthird line\r/status\r");
    terminal.wait("/status\r\n");
    talk.provider.extend(["one", "two", "three"].map(Step::text));
    talk.room.write("work/go", "");
    for words in ["one", "two", "three", "window 16,000"] {
        terminal.wait(words);
    }
    assert!(terminal.end().0.success());
    assert_eq!(talk.said("user"), ["first", "second line", "third line"]);
}

#[test]
fn text_pasted_without_brackets_is_sent_line_by_line() {
    let talk = Talk::new();
    talk.provider.extend(["one", "two", "three"].map(Step::text));
    let mut terminal = Terminal::new(&talk, &GOOD);
    terminal.wait("> ");
    terminal.type_in("aaa\rbbb\rccc\r");
    for words in ["one", "two", "three"] {
        terminal.wait(words);
    }
    assert!(terminal.end().0.success());
    assert_eq!(talk.said("user"), ["aaa", "bbb", "ccc"]);
}

#[test]
fn lines_typed_before_a_question_do_not_answer_it() {
    let talk = Talk::new();
    let mut terminal = with_tool(&talk);
    terminal.wait("running bash (Ctrl-C stops it)");
    terminal.type_in("y\r");
    terminal.wait("y\r\n");
    talk.provider
        .extend([Step::call("bash", json!({"command": "touch never"})), Step::text("then done")]);
    talk.room.write("work/go", "");
    terminal.wait("run touch never");
    terminal.wait("input typed before this question is ignored");
    terminal.wait("allow it?");
    terminal.type_in("n\r");
    terminal.wait("then done");
    assert!(terminal.end().0.success());
    assert!(!talk.room.path("work/never").exists());
    assert_eq!(talk.said("user"), ["first"]);
}

#[test]
fn after_ctrl_c_at_a_question_the_model_is_not_called_again() {
    let talk = Talk::new();
    talk.provider.extend([Step::call("bash", json!({"command": "touch never"}))]);
    let mut terminal = Terminal::new(&talk, &GOOD);
    terminal.say("first");
    terminal.wait("allow it?");
    terminal.type_in("\u{3}");
    terminal.wait("stopped");
    terminal.say("/status");
    terminal.wait("window 16,000");
    assert!(terminal.end().0.success());
    assert_eq!(talk.provider.count(), 1);
}

#[test]
fn unknown_commands_are_reported_and_not_sent_to_the_model() {
    let talk = Talk::new();
    talk.provider.extend([Step::text("I see")]);
    let mut terminal = Terminal::new(&talk, &GOOD);
    for (typed, told) in [
        ("/Help", "unknown command /Help"),
        ("/quit now", "/quit takes no argument"),
        ("/undo now", "/undo takes no argument"),
    ] {
        terminal.say(typed);
        terminal.wait(told);
        terminal.wait("hint:");
    }
    terminal.say("//compact");
    terminal.wait("I see");
    assert!(terminal.end().0.success());
    assert_eq!(talk.said("user"), ["/compact"]);
    assert_eq!(talk.provider.count(), 1);
}

#[test]
fn a_tool_cannot_ask_at_the_terminal() {
    let talk = Talk::new();
    let command = "printf 'Username: ' >/dev/tty; read name </dev/tty; echo \"got $name\"";
    talk.provider
        .extend([Step::call("bash", json!({ "command": command })), Step::text("the end")]);
    let mut terminal = Terminal::new(&talk, &GOOD);
    terminal.say("first");
    terminal.wait("allow it?");
    terminal.type_in("y\r");
    terminal.wait("the end");
    assert!(terminal.end().0.success());
    let result = talk.said("toolResult").remove(0);
    assert!(result.contains("/dev/tty: No such device") && result.contains("got \n"), "{result}");
}
