//! The engine as a process.

fn main() -> std::io::Result<()> {
    ctx_engine_sdk::serve::<sliding_window::SlidingWindow>()
}
