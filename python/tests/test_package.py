"""The package as a whole: versions, errors, threads, and what help() shows."""

import gc
import inspect
import os
import pydoc
import subprocess
import sys
import threading

import pytest

import remat
from remat._library import ffi, lib


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )


# ---- the library ----


def test_the_version_is_that_of_the_library():
    assert remat.__version__ == ffi.string(lib.remat_version()).decode()
    found = remat.doctor()
    assert found.version == remat.__version__ and os.path.isfile(found.library_path) and found.threads > 0
    limits = remat.measure_limits(threads=1)
    assert limits.flops_per_second > 0 and limits.bytes_per_second > 0 and limits.threads == 1


def test_every_function_of_the_headers_is_in_the_library():
    names = [name for name in dir(lib) if name.startswith("remat_")]
    assert len(names) > 250 and "remat_graph_plan_create" in names and "remat_graph_plan_options_init" not in names
    for name in names:
        assert getattr(lib, name)
    # Values come from the headers too.
    assert lib.REMAT_NO_BUDGET == lib.REMAT_NOWHERE == (1 << 64) - 1 and lib.REMAT_UNLIMITED == (1 << 63) - 1
    assert lib.REMAT_NO_TENSOR == (1 << 32) - 1 and lib.REMAT_NO_SAVE == 0xFFFF


def test_another_library_is_refused(tmp_path):
    ran = python("import remat", REMAT_SHARED_LIBRARY=str(tmp_path / "none.so"))
    assert ran.returncode != 0 and "ImportError: the shared library of remat cannot be loaded" in ran.stderr
    # The C library of the system is a library without remat's functions.
    ran = python("import remat", REMAT_SHARED_LIBRARY="libc.so.6")
    assert ran.returncode != 0 and "libc.so.6 is not the shared library of remat" in ran.stderr


def test_the_library_of_another_release_is_refused(tmp_path):
    compiler = os.environ.get("CC", "cc")
    source, library = tmp_path / "old.c", tmp_path / "old.so"
    source.write_text('const char *remat_version(void) { return "0.0.9"; }\n')
    if subprocess.run([*compiler.split(), "-shared", "-fPIC", str(source), "-o", str(library)], check=False).returncode:
        pytest.skip("no C compiler")
    ran = python("import remat", REMAT_SHARED_LIBRARY=str(library))
    assert ran.returncode != 0
    assert f"release 0.0.9 of the shared library, and this Python package is release {remat.__version__}" in ran.stderr


def test_the_source_alone_says_how_to_build():
    ran = python("import sys; sys.path.insert(0, 'python'); import remat", PYTHONPATH="")
    assert ran.returncode != 0 and "--target remat_python" in ran.stderr


def test_pytorch_is_imported_only_when_it_is_named():
    ran = python("import sys, remat; assert 'torch' not in sys.modules; assert not hasattr(remat, 'nothing')")
    assert ran.returncode == 0, ran.stderr


# ---- errors ----


def test_errors_are_also_those_of_python():
    with pytest.raises(ValueError) as caught:
        remat.parse_size("8G")
    assert caught.value.status is remat.Status.INVALID and "GiB" in caught.value.message
    with pytest.raises(OSError) as caught:
        remat.Graph.load("no such file")
    assert caught.value.file == "no such file" and caught.value.status == 6
    with pytest.raises(remat.Error) as caught:
        remat.Graph.from_json('{"format": "remat-graph",\n "version": 2}', name="new.json")
    assert isinstance(caught.value, remat.InputFileError) and caught.value.file == "new.json"
    for kind in remat.Status:
        if kind is not remat.Status.OK:
            assert remat.errors.from_context(kind, remat._handles.Context().pointer).status is kind


def test_wrong_arguments():
    graph = remat.Graph()
    with pytest.raises(ValueError, match="negative"):
        graph.add_tensor(-1)
    with pytest.raises(OverflowError):
        graph.add_tensor(1 << 64)
    with pytest.raises(remat.InvalidError):
        graph.add_tensor(1 << 63)
    with pytest.raises(ValueError, match="NUL"):
        graph.add_tensor(1, name="a\0b")
    with pytest.raises(ValueError, match="NUL"):
        graph.save("a\0b")
    with pytest.raises((TypeError, AttributeError)):
        graph.add_tensor(1.5)
    with pytest.raises(remat.InvalidError, match="tensor"):
        graph.add_action(1, reads=[7])
    assert len(graph.tensors) == len(graph.actions) == 0


def test_sizes():
    assert remat.parse_size("1.5GB") == 1_500_000_000 and remat.parse_size(7) == 7
    assert remat.format_size(64 << 10) == "64 KiB"
    assert remat.parse_size(remat.format_size(123456789, round_up=True).replace(" ", "")) >= 123456789


def test_warnings_name_the_line_of_the_caller():
    text = '{"format": "remat-graph", "version": 1, "odd": 1, "tensors": [], "actions": []}'
    with pytest.warns(remat.RematWarning, match="'odd' is unknown") as caught:
        remat.Graph.from_json(text)
    assert caught[0].filename == __file__


# ---- threads ----


def hard_graph(length):
    graph = remat.Graph()
    tensors = [graph.add_tensor(1000) for _ in range(2 * length)]
    graph.add_action(1, writes=[tensors[0]])
    for i in range(1, length):
        graph.add_action(10, reads=tensors[max(0, i - 3) : i], writes=[tensors[i]])
    for i in range(length, 2 * length):
        graph.add_action(10, reads=[tensors[i - 1], tensors[2 * length - 1 - i]], writes=[tensors[i]])
    graph.add_result(tensors[-1])
    return graph


def test_objects_of_different_contexts_work_at_the_same_time():
    graph, planned = hard_graph(8), threading.Event()
    plan = remat.Profile()
    plan.add_layer("other", 10, 10)
    worker = threading.Thread(target=lambda: (graph.plan(9000, threads=1), planned.set()))

    def visit(_step):
        # The walk is in the middle of a call, and holds its own context only.
        if not planned.is_set():
            worker.start()
            assert planned.wait(60)

    plan.plan().walk(visit)
    worker.join(60)
    assert planned.is_set()


def test_threads_share_a_graph():
    graph = hard_graph(8)
    found, failed = [], []

    def work():
        try:
            for _ in range(5):
                found.append(graph.plan(9000, threads=1).total_cost)
                with pytest.raises(remat.BudgetError) as caught:
                    graph.plan(100, threads=1)
                assert caught.value.budget_bytes == 100
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not failed and len(found) == 20 and len(set(found)) == 1


def test_memory_is_given_back():
    graph = remat.Graph()
    context = graph._handle.context
    for _ in range(10):
        graph.add_tensor(10)
    graph.add_action(1, writes=range(10))
    graph.plan()
    before = lib.remat_context_bytes(context.pointer)
    for _ in range(20):
        graph.plan().schedule
        graph.curve()
    gc.collect()
    assert lib.remat_context_bytes(context.pointer) == before


# ---- the manual ----


def public():
    for name in remat.__all__:
        value = getattr(remat, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield name, value


def test_everything_is_described():
    for name, value in public():
        assert inspect.getdoc(value), f"{name} has no docstring"
        members = vars(value).items() if inspect.isclass(value) else ()
        for member, what in members:
            if member.startswith("_") or not (callable(what) or isinstance(what, (property, classmethod))):
                continue
            assert inspect.getdoc(what), f"{name}.{member} has no docstring"
            function = what.fget if isinstance(what, property) else inspect.unwrap(getattr(what, "__func__", what))
            if inspect.isfunction(function):
                missing = set(inspect.signature(function).parameters) - set(function.__annotations__) - {"self", "cls"}
                assert not missing, f"{name}.{member} lacks type hints: {missing}"
                assert "return" in function.__annotations__, f"{name}.{member} lacks the type of its result"
        assert len(pydoc.render_doc(value)) > 100


def test_figures_have_the_names_of_the_c_structs():
    pairs = {
        "remat_graph_figures": remat.GraphFigures,
        "remat_graph_plan_figures": remat.GraphPlanFigures,
        "remat_graph_place": remat.GraphPlace,
        "remat_graph_point": remat.GraphPoint,
        "remat_figures": remat.ScheduleFigures,
        "remat_plan_figures": remat.PlanFigures,
        "remat_plan_statistics": remat.PlanStatistics,
        "remat_memory_column": remat.MemoryColumn,
        "remat_sweep_point": remat.CurvePoint,
        "remat_strategy_info": remat.Strategy,
        "remat_mode": remat.Mode,
        "remat_model_layer": remat.ModelLayer,
        "remat_sample_field": remat.SampleField,
        "remat_trainer_figures": remat.TrainerFigures,
        "remat_step_result": remat.StepResult,
        "remat_validation_result": remat.ValidationResult,
        "remat_run_result": remat.RunResult,
        "remat_train_point": remat.TrainPoint,
        "remat_action": remat.Action,
        "remat_measurement": remat.Measurement,
        "remat_evaluation_figures": remat.EvaluationFigures,
        "remat_class_figures": remat.ClassFigures,
        "remat_target_figures": remat.TargetFigures,
        "remat_machine_limits": remat.MachineLimits,
    }
    for name, kind in pairs.items():
        members = [member for member, _field in ffi.typeof(name).fields]
        assert list(kind._fields) == [member for member in members if member in kind._fields], name
