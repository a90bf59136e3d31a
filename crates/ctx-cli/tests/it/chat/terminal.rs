//! `ctx chat` at a terminal, used as a user would.

use std::io::{Read, Write};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use ctx_testkit::provider::Step;
use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use serde_json::json;

use super::{Talk, pi};

/// How long to wait for expected output.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal with `ctx chat` in it.
pub(super) struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    pieces: Receiver<Vec<u8>>,
    /// Output that was not waited for yet.
    shown: String,
    /// All output.
    all: String,
}

impl Terminal {
    pub(super) fn new(talk: &Talk, args: &[&str]) -> Self {
        Self::started_by(talk, ":", args)
    }

    /// As [`Self::new`], after a shell has run `script`.
    pub(super) fn started_by(talk: &Talk, script: &str, args: &[&str]) -> Self {
        let (pty, pts) = open().expect("a terminal");
        pty.resize(Size::new(40, 100)).expect("a size");
        let plain = talk.command(args);
        let mut command = Command::new("bash")
            .args(["-c", &format!("{script}; exec \"$0\" \"$@\"")])
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(plain.get_current_dir().expect("a folder"))
            .env("TERM", "xterm");
        for (name, value) in plain.get_envs() {
            command = match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let child = command.spawn(pts).expect("it starts");
        let pty = Arc::new(pty);
        let (sender, pieces) = channel();
        let reading = pty.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading from a closed terminal is an error.
            while let Ok(got @ 1..) = (&*reading).read(&mut buffer) {
                if sender.send(buffer[..got].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { pty, child, pieces, shown: String::new(), all: String::new() }
    }

    /// Waits for this text, and returns the output before it.
    pub(super) fn wait(&mut self, words: &str) -> String {
        loop {
            if let Some(at) = self.shown.find(words) {
                let rest = self.shown.split_off(at + words.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            let Ok(piece) = self.pieces.recv_timeout(PATIENCE) else {
                panic!("{words:?} is missing in the output: {}", self.all);
            };
            let text = String::from_utf8_lossy(&piece);
            self.shown.push_str(&text);
            self.all.push_str(&text);
        }
    }

    pub(super) fn type_in(&self, text: &str) {
        (&*self.pty).write_all(text.as_bytes()).expect("it reads");
    }

    /// Types a line at the prompt.
    pub(super) fn say(&mut self, text: &str) {
        self.wait("> ");
        self.type_in(&format!("{text}\r"));
    }

    pub(super) fn end(mut self) -> (ExitStatus, String) {
        self.wait("> ");
        self.type_in("\u{4}");
        let status = self.child.wait().expect("it ends");
        while let Ok(piece) = self.pieces.recv_timeout(PATIENCE) {
            self.all.push_str(&String::from_utf8_lossy(&piece));
        }
        (status, self.all)
    }
}

pub(super) const GOOD: [&str; 2] = ["--model", "openai/good"];

#[test]
fn fifty_turns_at_a_terminal_keep_within_the_window_and_open_in_pi() {
    let talk = Talk::new();
    let chain = ["--model", "openai/broken", "--model", "openai/good", "--verbose"];
    let mut terminal = Terminal::new(&talk, &chain);
    for n in 1..=50 {
        terminal.say(&format!("turn {n}: go on"));
        if n % 3 == 2 {
            terminal.wait("allow it?");
            terminal.type_in("y\r");
        }
        let before = terminal.wait(&format!("answer {n}: "));
        if n == 1 {
            assert!(before.contains("openai/good answers instead of openai/broken"), "{before}");
        }
        terminal.wait(" % of 12,000");
        if n == 25 {
            terminal.say("/compact the steps");
            terminal.wait("Messages compacted: ");
            terminal.wait(" % of 12,000");
        }
    }
    let (status, all) = terminal.end();
    assert!(status.success(), "{all}");
    talk.check(50);
    assert!(talk.compactions() >= 2, "{} compactions", talk.compactions());
    assert!(all.contains("🧹 Auto-compaction complete (count "), "{all}");
    assert!(all.contains("· bash seq 2 302"), "{all}");
    assert!(talk.notes().contains("the user wants to go on"), "a flush stored it");
    pi::opens(&talk.transcript(), "answer 50");
}

#[test]
fn only_allowed_commands_run_and_always_applies_to_the_same_command() {
    let talk = Talk::new();
    let command = "echo ran >> ran.txt; cat ran.txt";
    let ask = |after: &str| {
        [Step::call("bash", json!({"command": command})), Step::text(format!("then {after}"))]
    };
    let mut terminal = Terminal::new(&talk, &GOOD);
    talk.provider.extend(["one", "two", "three"].into_iter().flat_map(ask));
    let ran = || std::fs::read_to_string(talk.room.path("work/ran.txt")).unwrap_or_default();
    terminal.say("first");
    terminal.wait("run echo ran");
    terminal.wait("allow it?");
    terminal.type_in("what?\r");
    terminal.wait("allow it?");
    terminal.type_in("n\r");
    terminal.wait("then one");
    assert_eq!(ran(), "");
    terminal.say("second");
    terminal.wait("allow it?");
    terminal.type_in("a\r");
    terminal.wait("then two");
    assert_eq!(ran(), "ran\n");
    terminal.say("third");
    let between = terminal.wait("then three");
    assert!(!between.contains("allow it?"), "{between}");
    assert_eq!(ran(), "ran\nran\n");
    assert!(terminal.end().0.success());
    let refused = talk.said("toolResult").remove(0);
    assert_eq!(refused, "not done: denied by the user");
}

#[test]
fn ctrl_c_stops_a_turn_and_the_session_stays_intact() {
    let talk = Talk::new();
    talk.provider.extend([Step::hang()]);
    let mut terminal = Terminal::new(&talk, &GOOD);
    terminal.say("turn 1: go on");
    assert!(talk.provider.wait_arrived(1));
    terminal.type_in("\u{3}");
    terminal.wait("stopped");

    // During a tool call: the processes of the command end as well.
    talk.provider
        .extend([Step::call("bash", json!({"command": "echo $$ > tmp; mv tmp pid; sleep 1000"}))]);
    terminal.say("turn 2: go on");
    terminal.wait("allow it?");
    terminal.type_in("y\r");
    let pid = talk.room.path("work/pid");
    while !pid.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    terminal.type_in("\u{3}");
    terminal.wait("stopped");
    let stat = format!("/proc/{}/stat", std::fs::read_to_string(&pid).expect("a pid").trim());
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::sleep(Duration::from_millis(5));
    }

    // During a question.
    talk.provider.extend([Step::call("bash", json!({"command": "touch never"}))]);
    terminal.say("turn 4: go on");
    terminal.wait("allow it?");
    terminal.type_in("\u{3}");
    terminal.wait("stopped");
    assert!(!talk.room.path("work/never").exists());

    terminal.say("turn 6: go on");
    terminal.wait("answer 6: ");
    assert!(terminal.end().0.success());
    let asked = talk.said("user");
    assert_eq!(asked.iter().filter(|text| text.starts_with("turn ")).count(), 4, "{asked:?}");
    let results = talk.said("toolResult");
    assert_eq!(results.len(), 2, "interrupted calls have results: {results:?}");
}

#[test]
fn ctrl_c_stops_a_turn_even_if_the_shell_ignored_it() {
    let talk = Talk::new();
    talk.provider.extend([Step::hang()]);
    let mut terminal = Terminal::started_by(&talk, "trap '' INT", &GOOD);
    terminal.say("turn 1: go on");
    assert!(talk.provider.wait_arrived(1));
    terminal.type_in("\u{3}");
    terminal.wait("stopped");
    terminal.say("turn 3: go on");
    terminal.wait("answer 3: ");
    assert!(terminal.end().0.success());
}

#[test]
fn pasted_text_is_one_message_and_typed_lines_are_in_the_history() {
    let talk = Talk::new();
    talk.provider.extend([Step::text("one"), Step::text("two")]);
    let mut terminal = Terminal::new(&talk, &GOOD);
    terminal.wait("> ");
    terminal.type_in("\u{1b}[200~first line\nsecond line\u{1b}[201~\r");
    terminal.wait("one");
    assert!(terminal.end().0.success());
    assert_eq!(talk.said("user"), ["first line\nsecond line"]);

    let mut terminal = Terminal::new(&talk, &GOOD);
    terminal.wait("> ");
    terminal.type_in("\u{1b}[A\r");
    terminal.wait("two");
    assert!(terminal.end().0.success());
    assert_eq!(talk.said("user"), ["first line\nsecond line"; 2]);
}

#[test]
fn help_lists_the_commands_and_an_error_does_not_end_the_conversation() {
    let talk = Talk::new();
    let failed = ctx_testkit::provider::FailureKind::Unauthorized;
    talk.provider.extend([Step::error(failed), Step::text("all is well")]);
    let mut terminal = Terminal::new(&talk, &GOOD);
    terminal.say("/help");
    for (usage, _) in ctx_runtime::COMMANDS {
        terminal.wait(usage);
    }
    terminal.wait("/quit");
    terminal.say("hello");
    terminal.wait("error:");
    terminal.say("hello again");
    terminal.wait("all is well");
    terminal.say("/status");
    terminal.wait("window 16,000");
    terminal.say("/quit");
    assert!(terminal.child.wait().expect("it ends").success());
}
