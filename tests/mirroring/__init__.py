"""The thirteen scenarios of Cluster Mirroring's own suite (KIP-1279, a proposal for Apache Kafka), written anew for this product.

Where a test of another room is the scenario, that one is named here, and there is no second one.

| scenario | its test |
|---|---|
| a stop and a failback: there four of five records stay, here all five | ``test_nodes.py``: \
five_records_of_five_come_through_a_failback |
| pause and resume | ``flows/test_freezing.py``: nobody_writes_for_a_frozen_flow_until_it_is_opened; what others write: \
``windows/test_faults.py``: records_of_others_hold_the_partition; in Airflow: ``on_airflow/test_window_tasks.py``: \
a_paused_dag_ends_its_window_and_says_so |
| an update of the configuration | ``test_flows.py``: a_configuration_is_changed_while_its_flow_has_work |
| a mirror is deleted | ``topologies/test_changes.py``: a_changed_file_counts_in_the_next_window |
| a topic is deleted | ``topologies/test_changes.py``: a_source_topic_that_is_gone_for_good, a_remote_topic_created_again; \
in mid-window: ``windows/test_faults.py``: a_topic_that_vanishes_in_mid_window |
| filters of topics, and topics that are found later | ``test_flows.py``: topics_are_filtered_and_found |
| properties that are excluded | ``topics/test_configs.py``: configs_follow_the_source_and_each_change_is_reported |
| filters of groups | ``test_groups.py``: groups_are_filtered |
| logs are equal after the nodes of both clusters were started again | ``chaos/test_chaos.py``: \
each_kind_happens_and_nothing_is_lost (its kinds of nodes) |
| the same with two unclean elections and a failback: every lost record is named | ``test_nodes.py``: \
every_record_that_two_unclean_elections_lose_is_named |
| a stop while transactions are open | ``test_flows.py``: a_stop_while_transactions_are_open |
| groups, of which active ones are left alone | ``test_groups.py``: a_group_is_moved_while_it_is_idle_and_the_flow_runs |
| share groups: they are named | ``test_groups.py``: share_groups_are_named |
"""
