use super::*;

#[test]
fn finished_job_takes_no_room_for_the_object_it_was() {
    assert!(size_of::<JobRecord>() < 300, "{} bytes", size_of::<JobRecord>());
}
