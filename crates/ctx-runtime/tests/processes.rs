//! Runtimes in processes of their own: locked out, killed, and out of space.
//!
//! A test that needs a second process runs this program again with its own name and the variable
//! `CTX_TEST_CHILD` set, and takes the other branch there.

#![allow(clippy::unwrap_used)] // A test; the lint only knows those inside of `#[test]`.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use ctx_core::{ErrorKind, NoTools, Role, Tokens};
use ctx_engine_registry::Config;
use ctx_runtime::{Deaf, Runtime, TurnOutcome};
use ctx_session::Transcript;
use ctx_session::key::{FileId, SessionKey};
use ctx_session::paths::Home;
use ctx_session::store::SessionStore;
use ctx_testkit::chat::{ScriptedChat, Step};

const CHILD: &str = "CTX_TEST_CHILD";

/// In the child: the folder to work in.
fn child_dir() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// This program, to run one test as a child. `limit` is the largest file it may write, in KiB.
fn child(test: &str, dir: &Path, limit: Option<u32>) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = match limit {
        None => Command::new(program),
        Some(kib) => {
            // With the signal ignored, a write beyond the limit fails half-way instead of killing.
            let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kib * 2);
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(script).arg(program);
            shell
        }
    };
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Says something to the parent, in one write.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("say {text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// What the child says, from the test harness's own output.
fn said(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| {
        // The harness leaves its "test name ... " open when the first line comes.
        line.split_once("say ").map(|(_, said)| said.to_owned())
    })
}

fn key() -> SessionKey {
    SessionKey::main(FileId::main())
}

fn runtime(dir: &Path, model: ScriptedChat) -> Runtime {
    let builder = Runtime::builder(Home::at(dir), Config::parse("{}").unwrap());
    builder.model(Arc::new(model)).window(Tokens(1_000_000)).build().unwrap()
}

fn turn(runtime: &Runtime, text: &str) -> ctx_core::Result<TurnOutcome> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    tokio.block_on(runtime.turn(&key(), text, &NoTools, &mut Deaf))
}

fn stored(dir: &Path) -> Vec<(Role, String)> {
    let home = Home::at(dir);
    let sessions = SessionStore::at(home.sessions_file(&FileId::main())).load().unwrap();
    let path = home.transcript(&key(), sessions.get(&key()).unwrap()).unwrap();
    let transcript = Transcript::open(&path).unwrap();
    assert_eq!(transcript.problems(), []);
    let line = transcript.main_line().unwrap();
    let messages = line.iter().map(|item| item.entry.message().unwrap());
    messages.map(|message| (message.role.clone(), message.plain_text())).collect()
}

#[test]
fn a_session_that_another_process_has_open_is_told_with_a_hint_and_free_once_it_is_killed() {
    if let Some(dir) = child_dir() {
        let runtime = runtime(&dir, ScriptedChat::new("script/a", 100_000));
        turn(&runtime, "hello").unwrap();
        say("open");
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        unreachable!("it is killed before");
    }
    let dir = tempfile::tempdir().unwrap();
    let name =
        "a_session_that_another_process_has_open_is_told_with_a_hint_and_free_once_it_is_killed";
    let mut other = child(name, dir.path(), None);
    let mut lines = said(&mut other);
    assert_eq!(lines.next().as_deref(), Some("open"));
    let mine = runtime(dir.path(), ScriptedChat::new("script/b", 100_000));
    let error = turn(&mine, "let me in").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.hint_text().is_some_and(|hint| hint.contains(".lock")), "{error}");
    assert_eq!(stored(dir.path()).len(), 2, "nothing of it is between the other's messages");
    other.kill().unwrap();
    other.wait().unwrap();
    turn(&mine, "and now?").unwrap();
    let stored: Vec<_> = stored(dir.path()).into_iter().map(|(_, text)| text).collect();
    assert_eq!(stored, ["hello", "answer 1", "and now?", "answer 1"]);
}

#[test]
fn what_was_answered_before_a_process_was_killed_is_there_and_whole() {
    if let Some(dir) = child_dir() {
        let model = ScriptedChat::new("script/a", 1_000_000);
        let runtime = runtime(&dir, model);
        for n in 0.. {
            turn(&runtime, &format!("message {n}")).unwrap();
            say(&n.to_string());
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let name = "what_was_answered_before_a_process_was_killed_is_there_and_whole";
    let mut answered = 0;
    for round in 0..3 {
        let mut other = child(name, dir.path(), None);
        let told = said(&mut other).take(20 + 7 * round).count();
        other.kill().unwrap();
        other.wait().unwrap();
        answered += told;
        let mine = runtime(dir.path(), ScriptedChat::new("script/b", 1_000_000));
        turn(&mine, &format!("round {round}")).unwrap();
        answered += 1;
        let stored = stored(dir.path());
        let of = |wanted: Role| stored.iter().filter(|(role, _)| *role == wanted).count();
        // The one that was under way may be there or not; what was acknowledged is.
        assert!((answered..=answered + 2 * (round + 1)).contains(&of(Role::Assistant)));
        assert!(of(Role::User) >= of(Role::Assistant));
        answered = of(Role::Assistant);
    }
}

#[test]
fn a_full_disk_is_an_error_with_a_hint_and_the_session_goes_on_when_there_is_room() {
    const BIG: usize = 200_000;
    if let Some(dir) = child_dir() {
        let model =
            ScriptedChat::new("script/a", 1_000_000).always(|_| Step::text("x".repeat(BIG)));
        let runtime = runtime(&dir, model);
        let mut answered = 0;
        for n in 0..20 {
            match turn(&runtime, &format!("message {n}")) {
                Ok(_) => answered += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                    assert!(error.hint_text().is_some(), "{error}");
                    // A turn later nothing has changed, and nothing is worse.
                    let again = turn(&runtime, "again").map(|_| ()).unwrap_err();
                    assert!(again.hint_text().is_some(), "{again}");
                    say(&answered.to_string());
                    return;
                }
            }
        }
        unreachable!("it never was full");
    }
    let dir = tempfile::tempdir().unwrap();
    let name = "a_full_disk_is_an_error_with_a_hint_and_the_session_goes_on_when_there_is_room";
    let mut other = child(name, dir.path(), Some(2_048));
    // Read to the end: the harness of the child has to say something as well.
    let told: Vec<_> = said(&mut other).collect();
    let answered: usize = told[0].parse().unwrap();
    assert!(other.wait().unwrap().success());
    assert!(answered > 4, "{answered}");
    let answers = |stored: &[(Role, String)]| {
        stored.iter().filter(|(role, text)| *role == Role::Assistant && text.len() == BIG).count()
    };
    assert_eq!(answers(&stored(dir.path())), answered, "all that was answered, and nothing else");
    let mine = runtime(dir.path(), ScriptedChat::new("script/b", 1_000_000));
    turn(&mine, "there is room").unwrap();
    let stored = stored(dir.path());
    assert_eq!(stored.last().unwrap().1, "answer 1");
    assert_eq!(answers(&stored), answered);
}
