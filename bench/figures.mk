# What docs/figures.md is made of: all benchmarks in a short form, one after the other. Nothing else may
# run meanwhile. Each part can be run alone; `make figures` then writes the page anew.

figures_parts = steps keras predict inference peers clients cudnn ops random
figures_output = build/figures
word_lm = examples/word_lm/run.py
classifier = examples/keras_classifier/run.py --data standard_library digits --epochs 4
library = build/tf-$(1)/libblockcell.so

# How long a row is measured, and how often training steps take turns.
FIGURES_SECONDS ?= 1
FIGURES_ROUNDS ?= 3

.PHONY: bench-figures figures $(addprefix bench-figures-,$(figures_parts))

bench-figures: ## Measure all that docs/figures.md shows, and write it (40 to 70 minutes, on a machine that does nothing else)
	@rm -rf $(figures_output)
	@for part in $(figures_parts); do $(MAKE) --no-print-directory bench-figures-$$part || exit; done
	@$(MAKE) --no-print-directory figures

figures: .venv/.complete ## Write docs/figures.md, and README's table, from what bench-figures or its parts have measured
	@.venv/bin/python -m bench.figures --input $(figures_output) --readme README.md --chart docs/plots/overview.svg

bench-figures-steps:
	@$(MAKE) --no-print-directory lib TF=2.21
	@$(MAKE) --no-print-directory lib TF=1.15
	@.venv/bin/python $(word_lm) --library $(call library,2.21) --rounds $(FIGURES_ROUNDS) --output $(figures_output)/steps-2
	@.venv-1.15/bin/python $(word_lm) --library $(call library,1.15) --rounds 2 --sizes medium --output $(figures_output)/steps-2
	@.venv/bin/python $(word_lm) --library $(call library,2.21) --rounds 2 --threads 1 --output $(figures_output)/steps-1

bench-figures-keras: .venv-keras/.complete
	@scripts/build_lib.sh .venv-keras/bin/python
	@for threads in 1 2; do \
	  .venv-keras/bin/python $(classifier) --library $(call library,2.21) --threads $$threads \
	      --output $(figures_output)/keras-$$threads || exit; done

bench-figures-predict:
	@$(MAKE) --no-print-directory lib TF=2.21
	@.venv/bin/python -m bench.predict --library $(call library,2.21) --seconds $(FIGURES_SECONDS) --output $(figures_output)/predict

bench-figures-inference:
	@$(MAKE) --no-print-directory bench-inference \
	    INFERENCE_FLAGS="--rivals tensorflow --seconds $(FIGURES_SECONDS) --output $(figures_output)/inference"

bench-figures-peers: .venv-peers/.complete
	@scripts/build_lib.sh .venv-peers/bin/python
	@.venv-peers/bin/python -m bench.peers --sequences 50x1x128 50x1x512 50x8x256 20x20x200 35x20x650 \
	    --seconds $(FIGURES_SECONDS) --output $(figures_output)/peers

bench-figures-clients: .venv-peers/.complete
	@scripts/build_lib.sh .venv-peers/bin/python
	@.venv-peers/bin/python -m bench.peers --clients 1 2 4 --threads 2 --inter-op -1 \
	    --seconds $(FIGURES_SECONDS) --output $(figures_output)/clients

bench-figures-cudnn: .venv-1.15/.complete .venv-peers/.complete
	@for python in .venv-1.15/bin/python .venv-peers/bin/python; do \
	  scripts/build_lib.sh $$python && \
	  $$python -m bench.cudnn --sequences 20x20x200 35x20x650 --seconds $(FIGURES_SECONDS) --output $(figures_output)/cudnn || exit; done

bench-figures-ops:
	@$(MAKE) --no-print-directory lib TF=2.21
	@PYTHONPATH=python .venv/bin/python -m blockcell bench --dtypes float32,half --seconds 0.2 \
	    --output $(figures_output)/ops

bench-figures-random:
	@$(MAKE) --no-print-directory lib TF=2.21
	@PYTHONPATH=python .venv/bin/python -m blockcell bench --random 40 --dtypes float32 --seconds 0.15 --memory off \
	    --output $(figures_output)/random
