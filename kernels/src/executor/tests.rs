use std::sync::Mutex;
use std::thread::{self, ThreadId};

use super::{Executor, Serial, for_each};

/// Gives every task to a thread of its own, from the last to the first.
struct Backwards;

impl Executor for Backwards {
    fn run(&self, tasks: usize, _cost: u64, task: &(dyn Fn(usize) + Sync)) {
        for n in (0..tasks).rev() {
            thread::scope(|scope| scope.spawn(|| task(n)).join()).expect("no panic");
        }
    }
}

/// Breaks the contract: runs every task twice.
struct Twice;

impl Executor for Twice {
    fn run(&self, tasks: usize, cost: u64, task: &(dyn Fn(usize) + Sync)) {
        Serial.run(tasks, cost, task);
        Serial.run(tasks, cost, task);
    }
}

/// Must not be needed.
struct Nobody;

impl Executor for Nobody {
    fn run(&self, _tasks: usize, _cost: u64, _task: &(dyn Fn(usize) + Sync)) {
        panic!("no executor is needed");
    }
}

fn executors() -> Vec<Box<dyn Executor>> {
    let mut all: Vec<Box<dyn Executor>> =
        vec![Box::new(Serial), Box::new(Backwards), Box::new(Twice)];
    for threads in 1..=3 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        all.push(Box::new(pool.expect("threads")));
    }
    all
}

#[test]
fn every_tile_is_worked_on_once() {
    for (n, executor) in executors().iter().enumerate() {
        for tiles in [0, 1, 2, 3, 100, 1000] {
            let mut done = vec![0; tiles];
            for_each(&**executor, 1, done.iter_mut().collect(), |tile: &mut i32| *tile += 1);
            assert!(done.iter().all(|&times| times == 1), "executor {n}, {tiles} tiles");
        }
    }
}

/// The trait's own promise: each number once.
#[test]
fn executors_run_every_task_once() {
    for executor in executors().iter().filter(|executor| !runs_twice(&***executor)) {
        for tasks in [0, 1, 2, 100] {
            let seen = Mutex::new(Vec::new());
            executor.run(tasks, 1, &|n| seen.lock().expect("no panic").push(n));
            let mut seen = seen.into_inner().expect("no panic");
            seen.sort_unstable();
            assert_eq!(seen, (0..tasks).collect::<Vec<_>>());
        }
    }
}

fn runs_twice(executor: &dyn Executor) -> bool {
    let count = Mutex::new(0);
    executor.run(1, 1, &|_| *count.lock().expect("no panic") += 1);
    count.into_inner().expect("no panic") == 2
}

#[test]
fn a_single_tile_stays_on_the_calling_thread() {
    let here = thread::current().id();
    let mut seen: [Option<ThreadId>; 1] = [None];
    for_each(&Nobody, 1, seen.iter_mut().collect(), |tile: &mut Option<ThreadId>| {
        *tile = Some(thread::current().id());
    });
    assert_eq!(seen, [Some(here)]);
    for_each(&Nobody, 1, Vec::<()>::new(), |()| panic!("there is no tile"));
}

#[test]
fn pools_run_tasks_on_their_threads() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
    let mut seen = vec![None; 50];
    for_each(&pool, 1, seen.iter_mut().collect(), |tile: &mut Option<ThreadId>| {
        *tile = Some(thread::current().id());
    });
    let here = thread::current().id();
    assert!(seen.iter().all(|&id| id.is_some_and(|id| id != here)));
}

/// The cost reaches the executor, and the tasks are as many as the tiles.
#[test]
fn executors_are_told_the_work() {
    struct Told(Mutex<Vec<(usize, u64)>>);
    impl Executor for Told {
        fn run(&self, tasks: usize, cost: u64, task: &(dyn Fn(usize) + Sync)) {
            self.0.lock().expect("no panic").push((tasks, cost));
            Serial.run(tasks, cost, task);
        }
    }
    let told = Told(Mutex::default());
    for_each(&told, 123, vec![(); 7], |()| ());
    assert_eq!(told.0.into_inner().expect("no panic"), [(7, 123)]);
}
