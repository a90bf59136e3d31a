//! Runtimes in separate processes: locked out, killed, and out of disk space.
//!
//! A test that needs a second process runs this program again with its own name and the variable
//! `CTX_TEST_CHILD` set, and takes the other branch there.

#![allow(clippy::unwrap_used)] // Test helpers may unwrap.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use ctx_config::Config;
use ctx_core::{ErrorKind, NoTools, Role, Tokens};
use ctx_runtime::{NoListener, Runtime, TurnOutcome};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{Home, SessionStore, Transcript};
use ctx_testkit::chat::{ScriptedChat, Step};

const CHILD: &str = "CTX_TEST_CHILD";

/// Returns the working folder, in the child.
fn child_dir() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Starts this program as a child that runs one test.
fn child(test: &str, dir: &Path) -> Child {
    begun(Command::new(std::env::current_exe().unwrap()), test, dir)
}

/// Like [`child`], with limits set by a shell.
fn limited(test: &str, dir: &Path, limits: &str) -> Child {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{limits}; exec \"$0\" \"$@\""));
    shell.arg(std::env::current_exe().unwrap());
    begun(shell, test, dir)
}

fn begun(mut command: Command, test: &str, dir: &Path) -> Child {
    command
        .args([&*format!("processes::{test}"), "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Sends a line to the parent, in one write.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("say {text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Returns the child's lines, from the output of its test harness.
fn said(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| {
        // The harness leaves its "test name ... " open when the first line arrives.
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
    tokio.block_on(runtime.turn(&key(), text, &NoTools, &mut NoListener))
}

fn stored(dir: &Path) -> Vec<(Role, String)> {
    let home = Home::at(dir);
    let sessions = SessionStore::at(home.sessions_file(&FileId::main())).load().unwrap();
    let path = home.transcript(&key(), sessions.get(&key()).unwrap()).unwrap();
    let transcript = Transcript::open(&path).unwrap();
    assert_eq!(transcript.problems, []);
    let line = transcript.main_line().unwrap();
    let messages = line.iter().map(|item| item.entry.message().unwrap());
    messages.map(|message| (message.role.clone(), message.plain_text())).collect()
}

#[test]
fn a_session_open_in_another_process_is_locked_until_it_is_killed() {
    if let Some(dir) = child_dir() {
        let runtime = runtime(&dir, ScriptedChat::new("script/a", 100_000));
        turn(&runtime, "hello").unwrap();
        say("open");
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        unreachable!("it is killed before");
    }
    let dir = tempfile::tempdir().unwrap();
    let name = "a_session_open_in_another_process_is_locked_until_it_is_killed";
    let mut other = child(name, dir.path());
    let mut lines = said(&mut other);
    assert_eq!(lines.next().as_deref(), Some("open"));
    let mine = runtime(dir.path(), ScriptedChat::new("script/b", 100_000));
    let error = turn(&mine, "let me in").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.hint_text().is_some_and(|hint| hint.contains(".lock")), "{error}");
    assert_eq!(stored(dir.path()).len(), 2, "the rejected message is not stored");
    other.kill().unwrap();
    other.wait().unwrap();
    turn(&mine, "and now?").unwrap();
    let stored: Vec<_> = stored(dir.path()).into_iter().map(|(_, text)| text).collect();
    assert_eq!(stored, ["hello", "answer 1", "and now?", "answer 1"]);
}

#[test]
fn answers_before_a_kill_are_stored_completely() {
    if let Some(dir) = child_dir() {
        let model = ScriptedChat::new("script/a", 1_000_000);
        let runtime = runtime(&dir, model);
        for n in 0.. {
            turn(&runtime, &format!("message {n}")).unwrap();
            say(&n.to_string());
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let name = "answers_before_a_kill_are_stored_completely";
    let mut answered = 0;
    for round in 0..3 {
        let mut other = child(name, dir.path());
        let acknowledged = said(&mut other).take(20 + 7 * round).count();
        other.kill().unwrap();
        other.wait().unwrap();
        answered += acknowledged;
        let mine = runtime(dir.path(), ScriptedChat::new("script/b", 1_000_000));
        turn(&mine, &format!("round {round}")).unwrap();
        answered += 1;
        let stored = stored(dir.path());
        let of = |wanted: Role| stored.iter().filter(|(role, _)| *role == wanted).count();
        // The running turn may or may not be stored; acknowledged turns are stored.
        assert!((answered..=answered + 2 * (round + 1)).contains(&of(Role::Assistant)));
        assert!(of(Role::User) >= of(Role::Assistant));
        answered = of(Role::Assistant);
    }
}

#[test]
fn a_full_disk_is_an_error_with_a_hint_and_the_session_recovers() {
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
                    // A turn later the state is the same.
                    let again = turn(&runtime, "again").map(|_| ()).unwrap_err();
                    assert!(again.hint_text().is_some(), "{again}");
                    say(&answered.to_string());
                    return;
                }
            }
        }
        unreachable!("the disk was never full");
    }
    let dir = tempfile::tempdir().unwrap();
    let name = "a_full_disk_is_an_error_with_a_hint_and_the_session_recovers";
    // 2 MiB. With the signal ignored, a write beyond that fails half-way instead of killing.
    let mut other = limited(name, dir.path(), "trap '' XFSZ; ulimit -f 4096");
    // Read to the end: the child's harness also writes.
    let lines: Vec<_> = said(&mut other).collect();
    let answered: usize = lines[0].parse().unwrap();
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

#[test]
fn more_sessions_than_the_open_file_limit_run_in_one_process() {
    const SESSIONS: usize = 300;
    let nth = |n: usize| -> SessionKey { format!("agent:main:chat-{n}").parse().unwrap() };
    if let Some(dir) = child_dir() {
        let runtime = runtime(&dir, ScriptedChat::new("script/a", 100_000));
        let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for round in 0..2 {
            tokio.block_on(async {
                let turns = (0..SESSIONS).map(|n| {
                    let runtime = runtime.clone();
                    async move { runtime.turn(&nth(n), "hello", &NoTools, &mut NoListener).await }
                });
                for done in futures_util::future::join_all(turns).await {
                    done.unwrap_or_else(|error| panic!("round {round}: {error}"));
                }
            });
        }
        return say("done");
    }
    let dir = tempfile::tempdir().unwrap();
    let name = "more_sessions_than_the_open_file_limit_run_in_one_process";
    let mut other = limited(name, dir.path(), "ulimit -n 128");
    let lines: Vec<_> = said(&mut other).collect();
    assert_eq!(lines, ["done"]);
    assert!(other.wait().unwrap().success());
    let home = Home::at(dir.path());
    let sessions = SessionStore::at(home.sessions_file(&FileId::main())).load().unwrap();
    for n in 0..SESSIONS {
        let path = home.transcript(&nth(n), sessions.get(&nth(n)).unwrap()).unwrap();
        assert_eq!(Transcript::open(&path).unwrap().main_line().unwrap().len(), 4, "{n}");
    }
}
