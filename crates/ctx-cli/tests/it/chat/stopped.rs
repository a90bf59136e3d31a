//! `ctx chat` without a terminal, ended in the middle: by Ctrl-C, or killed.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::time::Duration;

use ctx_testkit::provider::{FailureKind, Step};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use signal_hook::consts::SIGINT;
use signal_hook::flag::register_conditional_shutdown;

use super::Talk;

const GOOD: [&str; 2] = ["--model", "openai/good"];

fn begin(talk: &Talk, args: &[&str]) -> Child {
    // Tests started in the background of a shell ignore Ctrl-C, and their children inherit that,
    // unless a handler is installed.
    static CAUGHT: Once = Once::new();
    CAUGHT.call_once(|| {
        let always = Arc::new(AtomicBool::new(true));
        register_conditional_shutdown(SIGINT, 130, always).expect("it can be caught");
    });
    let mut command = talk.command(&[&GOOD[..], args].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

fn interrupt(child: &Child) {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("an id");
    kill_process(id, Signal::INT).expect("it is there");
}

/// Waits until a process has ended; it may remain as a zombie.
fn wait_gone(pid: &str) {
    let stat = format!("/proc/{}/stat", pid.trim());
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Adds a step with a command that runs until killed. Returns its process id once it runs.
fn sleeping(talk: &Talk) -> impl Fn() -> String + use<> {
    let command = "(sleep 1000 & echo $! > tmp; mv tmp pid; wait); true";
    talk.provider.extend([Step::call("bash", json!({ "command": command }))]);
    let pid = talk.room.path("work/pid");
    move || {
        while !pid.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::read_to_string(&pid).expect("a pid")
    }
}

#[test]
fn ctrl_c_ends_a_script_and_the_session_stays_intact() {
    let talk = Talk::new();
    talk.provider.extend([Step::hang()]);
    let child = begin(&talk, &["-p", "turn 3: go on"]);
    assert!(talk.provider.wait_arrived(1));
    interrupt(&child);
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!((ended.status.signal(), ended.stdout.as_slice()), (Some(2), &b""[..]));

    let pid = sleeping(&talk);
    let child = begin(&talk, &["--tools", "bash", "-p", "turn 6: go on"]);
    let pid = pid();
    interrupt(&child);
    assert_eq!(child.wait_with_output().expect("it ends").status.signal(), Some(2));
    wait_gone(&pid);

    let ran = talk.run(&[&GOOD[..], &["-p", "turn 9: go on"]].concat());
    assert!(ran.stdout.starts_with("answer 9: "), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(talk.said("user"), ["turn 3: go on", "turn 6: go on", "turn 9: go on"]);
    assert_eq!(talk.said("toolResult").len(), 1, "the interrupted call has a result");
}

#[test]
fn a_command_does_not_outlive_a_program_that_is_killed() {
    let talk = Talk::new();
    let pid = sleeping(&talk);
    let mut child = begin(&talk, &["--tools", "bash", "-p", "turn 3: go on"]);
    let pid = pid();
    child.kill().expect("it is there");
    child.wait().expect("it ends");
    wait_gone(&pid);
}

#[test]
fn a_failed_line_of_a_pipe_sets_the_exit_code_and_ctrl_c_ends_the_program() {
    let talk = Talk::new();
    talk.provider.extend([Step::error(FailureKind::Unauthorized), Step::text("all is well")]);
    let mut child = begin(&talk, &[]);
    child.stdin.take().expect("a pipe").write_all(b"one\ntwo\n").expect("written");
    let ended = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(String::from_utf8_lossy(&ended.stdout).contains("all is well"), "{told}");

    talk.provider.extend([Step::hang()]);
    let mut child = begin(&talk, &[]);
    let mut lines = child.stdin.take().expect("a pipe");
    lines.write_all(b"three\n").expect("written");
    assert!(talk.provider.wait_arrived(3));
    interrupt(&child);
    assert_eq!(child.wait().expect("it ends").signal(), Some(2));
}
