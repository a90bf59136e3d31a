//! Writers that are killed at any moment while they append, compact, undo, redo and rewrite
//! sessions: everything acknowledged is stored, and an interrupted step is done completely or not
//! at all.
//!
//! Each writer is this program again, running the same test with the variable `CTX_TEST_CHILD` set.

// Test helpers are test code.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ctx_core::{Compacted, EntryId, RawJson, Timestamp, Tokens};
use ctx_session::key::FileId;
use ctx_session::{
    Durability, Home, LogOptions, NewEntry, NewSession, SessionLog, Transcript, open,
    rewrite_compacted, store_compaction, undo_compaction,
};
use ctx_testkit::Random;

const CHILD: &str = "CTX_TEST_CHILD";
const SEED: &str = "CTX_TEST_SEED";
const NOW: Timestamp = Timestamp(1_765_233_665_306);

/// The number of kills per kind of writer, and the number after which it gets a new session.
const KILLS: u64 = 100;
const KILLS_A_SESSION: u64 = 20;

/// A writer is killed before it completes this many steps.
const MOST_STEPS: u64 = 5;
/// The longest time from the last counted step to the kill, in microseconds.
const LONGEST: u64 = 50_000;

/// A step of a writer, also applied to the test's model of the session.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Message(String),
    /// The summary, and the number of the first kept message.
    Compact(String, usize),
    /// The number of the compaction.
    Undo(usize),
    Redo(usize),
    /// A rewrite of the session to the messages that its newest compaction kept.
    Rewrite,
}

/// The target of a writer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Ours,
    Foreign,
    /// A ctx session that is rewritten whenever possible, so nothing is undone.
    RewrittenSession,
}

impl Step {
    fn write(&self) -> String {
        match self {
            Self::Message(text) => format!("message {text} 0"),
            Self::Compact(summary, kept) => format!("compact {summary} {kept}"),
            Self::Undo(which) => format!("undo x {which}"),
            Self::Redo(which) => format!("redo x {which}"),
            Self::Rewrite => "rewrite x 0".to_owned(),
        }
    }

    fn read(text: &str) -> Self {
        let parts: Vec<&str> = text.split(' ').collect();
        let number = parts[2].parse().unwrap();
        match parts[0] {
            "message" => Self::Message(parts[1].to_owned()),
            "compact" => Self::Compact(parts[1].to_owned(), number),
            "undo" => Self::Undo(number),
            "redo" => Self::Redo(number),
            _ => Self::Rewrite,
        }
    }
}

/// The expected session.
#[derive(Clone, Debug, Default, PartialEq)]
struct Session {
    messages: Vec<String>,
    /// Summary, first kept message, and whether it was undone.
    compactions: Vec<(String, usize, bool)>,
    context: Vec<String>,
}

impl Session {
    fn after(&self, step: &Step) -> Self {
        let mut next = self.clone();
        match step {
            Step::Message(text) => next.messages.push(text.clone()),
            Step::Compact(summary, kept) => next.compactions.push((summary.clone(), *kept, false)),
            Step::Undo(which) => next.compactions[*which].2 = true,
            Step::Redo(which) => next.compactions[*which].2 = false,
            Step::Rewrite => {
                let (summary, kept, _) = next.compactions.pop().unwrap();
                next.messages.drain(..kept);
                next.compactions = vec![(summary, 0, false)];
            }
        }
        next.context = match next.compactions.iter().rev().find(|(.., undone)| !undone) {
            Some((summary, kept, _)) => {
                let kept = next.messages[*kept..].iter();
                std::iter::once(summary).chain(kept).cloned().collect()
            }
            None => next.messages.clone(),
        };
        next
    }

    /// The session as it is read.
    fn found(transcript: &Transcript) -> Self {
        let line: Vec<_> = transcript.main_line().unwrap().into_iter().map(|i| i.entry).collect();
        let text = |entry: &ctx_core::Entry| entry.message().unwrap().plain_text();
        let place = |id: &EntryId| line.iter().position(|entry| entry.id() == id).unwrap();
        let compactions = transcript.compaction_list(None).unwrap().into_iter();
        let context = transcript.context(None).unwrap().entries;
        Self {
            messages: line.iter().map(|entry| text(entry)).collect(),
            compactions: compactions
                // A compaction that begins a rewritten session keeps everything after it.
                .map(|c| (c.summary, c.first_kept_entry_id.as_ref().map_or(0, place), c.undone))
                .collect(),
            context: context.iter().map(|entry| text(entry)).collect(),
        }
    }
}

/// Sends a line to the parent, in one write.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("say {text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

struct Writer {
    home: Home,
    path: PathBuf,
    place: Place,
}

impl Writer {
    fn at(dir: &Path, place: Place) -> Self {
        Self { home: Home::at(dir.join("home")), path: dir.join("session.jsonl"), place }
    }

    fn options() -> LogOptions {
        LogOptions { durability: Durability::PerEntry, ..LogOptions::default() }
    }

    fn create(&self) {
        let text = format!("{}\n", "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}");
        if self.place != Place::Foreign {
            let session = NewSession {
                id: FileId::new("s").unwrap(),
                timestamp: NOW,
                cwd: "/".into(),
                parent_session: None,
            };
            SessionLog::create(&self.path, &session, Self::options()).unwrap();
        } else {
            std::fs::write(&self.path, text).unwrap();
        }
    }

    /// Chooses the next step: a message is always possible, a compaction or an undo often.
    fn choose(&self, transcript: &Transcript, random: &mut Random) -> Step {
        let now = Session::found(transcript);
        let undone = |wanted: bool| now.compactions.iter().rposition(|c| c.2 == wanted);
        let message = Step::Message(format!("m{}", now.messages.len()));
        if now.messages.len() < 2 {
            return message;
        }
        match random.below(5) {
            0 => message,
            1 | 2 => {
                let back = 1 + random.below(now.messages.len().min(4));
                let summary = format!("s{}", now.compactions.len());
                Step::Compact(summary, now.messages.len() - back)
            }
            _ if self.place == Place::RewrittenSession => {
                let newest = transcript.compaction_list(None).unwrap().pop();
                let fresh = newest.is_some_and(|newest| newest.archived.is_none());
                if fresh { Step::Rewrite } else { message }
            }
            3 => undone(false).map_or(message, Step::Undo),
            _ => undone(true).map_or(message, Step::Redo),
        }
    }

    fn act(&self, transcript: &Transcript, step: &Step) -> EntryId {
        let listed = |which: usize| transcript.compaction_list(None).unwrap()[which].clone();
        let undo = |id: Option<&EntryId>| {
            undo_compaction(&self.home, &self.path, id, NOW).unwrap().unwrap().id
        };
        match step {
            Step::Message(text) => self.append(transcript, text),
            Step::Compact(summary, kept) => {
                let line = transcript.main_line().unwrap();
                let compacted = Compacted {
                    summary: summary.clone(),
                    first_kept_entry_id: line[*kept].entry.id().clone(),
                    tokens_before: Tokens(2),
                    tokens_after: None,
                    details: None,
                    staying: Vec::new(),
                    projections: Vec::new(),
                };
                let at = transcript.leaf();
                store_compaction(&self.home, &self.path, at, &compacted, NOW).unwrap()
            }
            Step::Undo(which) => undo(Some(&listed(*which).id)),
            Step::Redo(which) => undo(listed(*which).undone_by.as_ref()),
            Step::Rewrite => rewrite_compacted(&self.path).unwrap().compaction,
        }
    }

    /// Returns the ids of all entries, in the session and its archives.
    fn ids(&self) -> HashSet<EntryId> {
        let folder = std::fs::read_dir(self.path.parent().unwrap()).unwrap();
        let files = folder.map(|file| file.unwrap().path()).filter(|file| {
            let name = file.file_name().unwrap().to_string_lossy();
            *file == self.path || name.starts_with("session.jsonl.archived-")
        });
        let mut ids = HashSet::new();
        for file in files {
            let transcript = open(&self.home, &file).unwrap();
            assert_eq!(transcript.problems, [], "{}", file.display());
            ids.extend(transcript.entries.iter().map(|entry| entry.id.clone()));
        }
        ids
    }

    fn append(&self, transcript: &Transcript, text: &str) -> EntryId {
        let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
        if self.place != Place::Foreign {
            let mut log = SessionLog::open(&self.path, Self::options()).unwrap();
            let entry = NewEntry::message(RawJson::from_text(message));
            let id = log.append(&entry, NOW).unwrap();
            log.close().unwrap();
            return id;
        }
        // Another program, which does not know the overlay.
        let last = Transcript::open(&self.path).unwrap().leaf().cloned();
        let parent = last.map_or("null".to_owned(), |id| format!("\"{id}\""));
        let id = format!("e{}", transcript.entries.len());
        let line =
            format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{message}}}"#);
        let mut file = std::fs::File::options().append(true).open(&self.path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
        id.into()
    }

    /// Runs until killed.
    fn work(&self, seed: u64) -> ! {
        let mut random = Random::seeded(seed);
        say("ready");
        loop {
            let transcript = open(&self.home, &self.path).unwrap();
            let step = self.choose(&transcript, &mut random);
            say(&format!("try {}", step.write()));
            let id = self.act(&transcript, &step);
            say(&format!("did {id}"));
        }
    }
}

fn spawn(test: &str, dir: &Path, seed: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&*format!("killed::{test}"), "--exact", "--nocapture", "--test-threads=1"]);
    command.env(CHILD, dir).env(SEED, seed.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills writers and checks the files after each.
fn kill_writers(test: &str, place: Place) {
    if let Some(dir) = std::env::var_os(CHILD) {
        let seed = std::env::var(SEED).unwrap().parse().unwrap();
        Writer::at(Path::new(&dir), place).work(seed);
    }
    let mut random = Random::seeded(place as u64);
    let (mut steps, mut caught, mut rewritten) = (0, 0, 0);
    for _ in 0..KILLS / KILLS_A_SESSION {
        let dir = tempfile::tempdir().unwrap();
        let writer = Writer::at(dir.path(), place);
        writer.create();
        let mut session = Session::default();
        let mut stored: Vec<EntryId> = Vec::new();
        for _ in 0..KILLS_A_SESSION {
            let mut child = spawn(test, dir.path(), random.next());
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let said = |line: std::io::Result<String>| {
                let line = line.unwrap();
                line.split_once("say ").map(|(_, said)| said.to_owned())
            };
            assert!(lines.by_ref().filter_map(said).any(|said| said == "ready"));
            // Kills at a random moment after some steps, however slow the machine is.
            let (began, wanted) = (Instant::now(), random.next() % MOST_STEPS);
            let (mut done, mut trying, mut killed) = (0, None, false);
            let mut said = lines.filter_map(said);
            loop {
                if !killed && done >= wanted {
                    let a_step = began.elapsed() / u32::try_from(done.max(1)).unwrap();
                    let longest = u64::try_from(a_step.as_micros()).unwrap().clamp(100, LONGEST);
                    std::thread::sleep(Duration::from_micros(random.next() % longest));
                    child.kill().unwrap();
                    killed = true;
                }
                let Some(said) = said.next() else { break };
                match said.split_once(' ').unwrap() {
                    ("try", step) => trying = Some(Step::read(step)),
                    (_, id) => {
                        let step = trying.take().unwrap();
                        rewritten += usize::from(step == Step::Rewrite);
                        session = session.after(&step);
                        stored.push(id.into());
                        done += 1;
                    }
                }
            }
            steps += done;
            assert!(!child.wait().unwrap().success());

            let transcript = open(&writer.home, &writer.path).unwrap();
            let found = Session::found(&transcript);
            match &trying {
                Some(step) if found == session.after(step) => {
                    session = found;
                    caught += 1;
                }
                _ => assert_eq!(found, session, "killed during {trying:?}"),
            }
        }
        let ids = writer.ids();
        for id in &stored {
            assert!(ids.contains(id), "{id} was stored");
        }
    }
    // Writers that never complete a step would test nothing.
    println!("{steps} steps, {caught} done but not reported");
    assert!(place != Place::RewrittenSession || rewritten > 10, "only {rewritten} rewrites");
    assert!(steps > KILLS, "only {steps} steps, {caught} done but not reported");
}

#[test]
fn nothing_is_lost_in_a_ctx_session() {
    kill_writers("nothing_is_lost_in_a_ctx_session", Place::Ours);
}

#[test]
fn nothing_is_lost_beside_a_foreign_file() {
    kill_writers("nothing_is_lost_beside_a_foreign_file", Place::Foreign);
}

#[test]
fn nothing_is_lost_when_a_session_is_rewritten() {
    kill_writers("nothing_is_lost_when_a_session_is_rewritten", Place::RewrittenSession);
}
